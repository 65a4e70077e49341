// Processes: their tree with what each did, and the chain of them that a build
// had to wait for.
#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <unordered_map>

#include "tracefs/query/analyses.h"
#include "tracefs/text/duration.h"

namespace tracefs::query {
namespace {

constexpr size_t kMost = size_t{1} << 18;
constexpr size_t kMaxDepth = 200;

// A process as operations and records tell of it.
struct Process {
  uint32_t pid = 0;
  uint32_t ppid = 0;
  std::string comm;
  std::string command;
  uint64_t begin_ns = UINT64_MAX;
  uint64_t end_ns = 0;
  bool began = false;  // its fork was seen
  bool ended = false;  // its exit was seen
  std::optional<uint32_t> code;
  uint64_t ops = 0;
  uint64_t errors = 0;
  uint64_t bytes = 0;
  uint64_t time_ns = 0;
  size_t parent = SIZE_MAX;
  std::vector<size_t> children;
};

class Processes : public Analysis {
 public:
  void Take(const format::Record& record, size_t /*trace*/) override {
    const Event& event = record.event;
    if (!HasRun(record) || !event.Has(Field::kPid)) return;
    // Who had to be guessed did not do it himself.
    if (NumberOr0(event, Field::kInferred) != 0) return;
    Process* const process =
        Of(static_cast<uint32_t>(event.Get(Field::kPid)), record.real_ns);
    if (process == nullptr) return;
    Link(process, static_cast<uint32_t>(NumberOr0(event, Field::kPpid)));
    if (record.HasText(Field::kComm)) process->comm = record.Text(Field::kComm);
    const uint64_t latency = NumberOr0(event, Field::kLatency);
    ++process->ops;
    process->errors += Failed(event) ? 1 : 0;
    process->bytes += tally::BytesOf(event).moved();
    process->time_ns += latency;
    if (!process->ended) {
      process->end_ns = std::max(process->end_ns, record.real_ns + latency);
    }
  }

  void TakeProcess(const ProcessRecord& record) override {
    using Kind = ProcessRecord::Kind;
    if (record.kind == Kind::kFork) {
      if (record.child.pid == record.process.pid) return;  // a thread
      Process* const child = Start(record.child.pid, record.real_ns);
      if (child == nullptr) return;
      child->began = true;
      Link(child, record.process.pid);
      return;
    }
    if (record.is_thread() && record.kind == Kind::kExit) return;
    Process* const process = Of(record.process.pid, record.real_ns);
    if (process == nullptr) return;
    Link(process, record.ppid);
    if (!record.comm.empty()) process->comm = record.comm;
    if (record.kind == Kind::kExec && !record.argv.empty()) {
      process->command.clear();
      ForEachListed(record.argv, [&](std::string_view word) {
        if (process->command.size() > 1000) return;
        process->command += (process->command.empty() ? "" : " ");
        process->command += word;
      });
    }
    process->end_ns = std::max(process->end_ns, record.real_ns);
    if (record.kind != Kind::kExit) return;
    process->ended = true;
    process->code = record.exit_code ? *record.exit_code
                    : record.signal  ? std::optional(128 + *record.signal)
                                     : std::nullopt;
    now_.erase(record.process.pid);
  }

 protected:
  std::vector<Process>& all() { return all_; }
  void Note(Table* table) const {
    if (left_out_ != 0) {
      table->notes.push_back(
          std::to_string(left_out_) +
          " operations and records were of processes beyond " +
          std::to_string(kMost));
    }
  }
  // Parents that began no operation and have no record are there as well.
  void Join() {
    for (size_t i = 0; i < all_.size(); ++i) {
      const size_t parent = all_[i].parent;
      if (parent != SIZE_MAX) all_[parent].children.push_back(i);
    }
  }

 private:
  Process* Start(uint32_t pid, uint64_t now_ns) {
    if (all_.size() >= kMost) {
      ++left_out_;
      return nullptr;
    }
    now_[pid] = all_.size();
    Process& made = all_.emplace_back();
    made.pid = pid;
    made.begin_ns = now_ns;
    made.end_ns = now_ns;
    return &made;
  }
  Process* Of(uint32_t pid, uint64_t now_ns) {
    const auto found = now_.find(pid);
    if (found != now_.end()) return &all_[found->second];
    return Start(pid, now_ns);
  }
  void Link(Process* process, uint32_t ppid) {
    if (process->ppid != 0 || ppid == 0 || ppid == process->pid) return;
    process->ppid = ppid;
    const auto parent = now_.find(ppid);
    if (parent == now_.end()) return;
    const auto self = static_cast<size_t>(process - all_.data());
    // A number that was given again must not make a ring.
    size_t up = parent->second;
    for (size_t depth = 0; up != SIZE_MAX && depth < kMaxDepth; ++depth) {
      if (up == self) return;
      up = all_[up].parent;
    }
    if (up == SIZE_MAX) process->parent = parent->second;
  }

  std::vector<Process> all_;
  std::unordered_map<uint32_t, size_t> now_;  // by pid
  uint64_t left_out_ = 0;
};

class Tree final : public Processes {
 public:
  std::vector<Table> Finish() override {
    Join();
    Table table;
    table.columns = {{"process"},
                     {"cpid", Unit::kNumber},
                     {"cppid", Unit::kNumber},
                     {"count", Unit::kNumber, true},
                     {"errors", Unit::kNumber, true},
                     {"bytes", Unit::kBytes, true},
                     {"time", Unit::kDuration, true},
                     {"first", Unit::kTime},
                     {"last", Unit::kTime},
                     {"exit", Unit::kNumber},
                     {"command"}};
    // Not by recursion: trees may be deep.
    std::vector<std::pair<size_t, size_t>> stack;
    for (size_t i = all().size(); i-- > 0;) {
      if (all()[i].parent == SIZE_MAX) stack.emplace_back(i, 0);
    }
    size_t open = 0;
    while (!stack.empty()) {
      const auto [i, depth] = stack.back();
      stack.pop_back();
      const Process& p = all()[i];
      if (!p.ended) ++open;
      table.rows.push_back(
          {Value::Text(std::string(2 * depth, ' ') +
                       (p.comm.empty() ? "?" : p.comm)),
           Value::Number(p.pid), p.ppid == 0 ? Value() : Value::Number(p.ppid),
           Value::Number(p.ops), Value::Number(p.errors),
           Value::Number(p.bytes), Value::Number(p.time_ns),
           Value::Number(p.begin_ns), Value::Number(p.end_ns),
           p.code ? Value::Number(*p.code) : Value(),
           p.command.empty() ? Value() : Value::Text(p.command)});
      for (size_t c = p.children.size(); c-- > 0;) {
        stack.emplace_back(p.children[c], depth + 1);
      }
    }
    if (open != 0) {
      table.notes.push_back(
          "of " + std::to_string(open) +
          " processes the end was not recorded: `last` is that of their last "
          "operation");
    }
    Note(&table);
    return {table};
  }
};

class CriticalPath final : public Processes {
 public:
  std::vector<Table> Finish() override {
    Join();
    Table table;
    table.columns = {{"process"},
                     {"cpid", Unit::kNumber},
                     {"waited", Unit::kDuration, true},
                     {"share", Unit::kShare, true},
                     {"first", Unit::kTime},
                     {"last", Unit::kTime},
                     {"command"}};
    size_t root = SIZE_MAX;
    for (size_t i = 0; i < all().size(); ++i) {
      const Process& p = all()[i];
      if (p.parent == SIZE_MAX &&
          (root == SIZE_MAX ||
           p.end_ns - p.begin_ns > all()[root].end_ns - all()[root].begin_ns)) {
        root = i;
      }
    }
    if (root == SIZE_MAX) return {table};
    const uint64_t whole = all()[root].end_ns - all()[root].begin_ns;
    std::map<size_t, uint64_t> waited;
    Walk(root, &waited);
    for (const auto& [i, ns] : waited) {
      const Process& p = all()[i];
      table.rows.push_back(
          {Value::Text(p.comm.empty() ? "?" : p.comm), Value::Number(p.pid),
           Value::Number(ns), Value::Share(ns, whole),
           Value::Number(p.begin_ns), Value::Number(p.end_ns),
           p.command.empty() ? Value() : Value::Text(p.command)});
    }
    table.notes.push_back("of the " + ExactDurationText(whole) + " of " +
                          (all()[root].comm.empty() ? "?" : all()[root].comm) +
                          " " + std::to_string(all()[root].pid) +
                          "; `waited` is its own time on the path");
    if (!all()[root].ended) {
      table.notes.push_back(
          "there are no process records: begins and ends are those of "
          "operations");
    }
    Note(&table);
    return {table};
  }

 private:
  // Backwards from the end: what ended last was waited for, then what ended
  // last before that began; the rest is the process's own.
  void Walk(size_t root, std::map<size_t, uint64_t>* waited) {
    std::vector<std::pair<size_t, uint64_t>> todo = {
        {root, all()[root].end_ns}};
    while (!todo.empty()) {
      const auto [i, until] = todo.back();
      todo.pop_back();
      const Process& p = all()[i];
      std::vector<size_t> children = p.children;
      std::ranges::sort(children, [this](size_t a, size_t b) {
        return all()[a].end_ns > all()[b].end_ns;
      });
      uint64_t now = until;
      for (const size_t c : children) {
        const Process& child = all()[c];
        if (child.end_ns > now || child.begin_ns >= child.end_ns) continue;
        (*waited)[i] += now - child.end_ns;
        todo.emplace_back(c, child.end_ns);
        now = std::max(child.begin_ns, p.begin_ns);
      }
      (*waited)[i] += now > p.begin_ns ? now - p.begin_ns : 0;
    }
  }
};

}  // namespace

std::unique_ptr<Analysis> MakeTree(const AnalysisOptions& /*options*/) {
  return std::make_unique<Tree>();
}
std::unique_ptr<Analysis> MakeCriticalPath(const AnalysisOptions& /*options*/) {
  return std::make_unique<CriticalPath>();
}

}  // namespace tracefs::query
