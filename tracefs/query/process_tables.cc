// Processes: their tree with what each did, and the chain of them that a build
// had to wait for.
#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "tracefs/build/process_tracker.h"
#include "tracefs/build/record_step.h"
#include "tracefs/query/analyses.h"
#include "tracefs/tally/sums.h"
#include "tracefs/text/duration.h"

namespace tracefs::query {
namespace {

constexpr size_t kMost = size_t{1} << 18;
constexpr size_t kCommandBytes = 1000;

// A process, its times since 1970 and what it did.
struct Life {
  uint32_t pid = 0;
  uint32_t ppid = 0;
  std::string comm;
  std::string command;
  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;
  bool recorded = false;  // more is told of it than what it forked and did
  bool ended = false;     // its exit was seen
  std::optional<uint32_t> code;
  tally::Sums sums;
  size_t parent = SIZE_MAX;  // smaller than its own number
  std::vector<size_t> children;
};

class Processes : public Analysis, private build::TrackerListener {
 public:
  void Take(const format::Record& record, size_t /*trace*/) override {
    const build::FileStep* const step = steps_.Of(record);
    if (step == nullptr || step->process.pid == 0 || !HasRoom(step->process)) {
      return;
    }
    real_ns_ = record.real_ns;
    sums_ = tally::SumsOf(record.event);
    tracker_.Take(*step);
  }

  void TakeProcess(const ProcessRecord& record) override {
    using Kind = ProcessRecord::Kind;
    if (!HasRoom(record.process) ||
        (record.kind == Kind::kFork && !HasRoom(record.child))) {
      return;
    }
    real_ns_ = record.real_ns;
    tracker_.Take(record);
  }

 protected:
  std::vector<Life>& all() { return all_; }
  const std::vector<Life>& all() const { return all_; }
  bool any_records() const { return tracker_.any_records(); }
  void Note(Table* table) const {
    if (left_out_ != 0) {
      table->notes.push_back(
          std::to_string(left_out_) +
          " operations and records were of processes beyond " +
          std::to_string(kMost));
    }
  }
  // To be called first when all have come.
  void Join() {
    tracker_.Finish();
    for (size_t i = 0; i < all_.size(); ++i) {
      const size_t parent = all_[i].parent;
      if (parent < i) all_[parent].children.push_back(i);
    }
  }

 private:
  bool HasRoom(const ProcessKey& key) {
    if (all_.size() < kMost || tracker_.Knows(key)) return true;
    ++left_out_;
    return false;
  }

  void ProcessBegan(const build::Process& process) override {
    all_.resize(process.id + size_t{1});
    Life& life = all_[process.id];
    life.pid = process.key.pid;
    life.begin_ns = life.end_ns = real_ns_;
  }
  void Did(const build::Process& process,
           const build::FileStep& step) override {
    Count(step, &all_[process.id]);
  }
  void DidWithout(build::ProcessId id, uint32_t /*number*/,
                  const build::FileStep& step) override {
    if (id != build::kNobody) Count(step, &all_[id]);
  }
  void Count(const build::FileStep& step, Life* life) {
    // Which process closes a file for good is only inferred.
    if (step.inferred) return;
    life->sums.Add(sums_);
    if (life->ended) return;
    life->end_ns = std::max(life->end_ns, real_ns_ + sums_.time_ns);
  }
  void Ran(const build::Process& process, const ProcessRecord&) override {
    Life& life = all_[process.id];
    life.end_ns = std::max(life.end_ns, real_ns_);
  }
  void ProcessEnded(const build::Process& process) override {
    Life& life = all_[process.id];
    life.ppid = process.parent_pid;
    if (process.parent < process.id) life.parent = process.parent;
    life.comm = process.comm;
    for (const std::string& word : process.now.image->argv) {
      if (life.command.size() > kCommandBytes) break;
      life.command += (life.command.empty() ? "" : " ") + word;
    }
    life.recorded = process.recorded;
    life.ended = process.ended;
    life.code = process.ShellStatus();
  }

  build::RecordSteps steps_;
  build::ProcessTracker tracker_{*this};
  uint64_t real_ns_ = 0;  // of what is being taken, and what it adds
  tally::Sums sums_;
  std::vector<Life> all_;  // by process
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
      const Life& p = all()[i];
      if (!p.ended) ++open;
      table.rows.push_back(
          {Value::Text(std::string(2 * depth, ' ') +
                       (p.comm.empty() ? "?" : p.comm)),
           Value::Number(p.pid), p.ppid == 0 ? Value() : Value::Number(p.ppid),
           Value::Number(p.sums.count), Value::Number(p.sums.errors),
           Value::Number(p.sums.bytes), Value::Number(p.sums.time_ns),
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
    RaiseEnds();
    const size_t root = Longest();
    if (root == SIZE_MAX) return {table};
    const uint64_t whole = all()[root].end_ns - all()[root].begin_ns;
    std::map<size_t, uint64_t> waited;
    Walk(root, &waited);
    for (const auto& [i, ns] : waited) {
      const Life& p = all()[i];
      table.rows.push_back(
          {Value::Text(p.comm.empty() ? "?" : p.comm), Value::Number(p.pid),
           Value::Number(ns), Value::Share(ns, whole),
           Value::Number(p.begin_ns), Value::Number(p.end_ns),
           p.command.empty() ? Value() : Value::Text(p.command)});
    }
    const std::string name =
        (all()[root].comm.empty() ? "?" : all()[root].comm) + " " +
        std::to_string(all()[root].pid);
    table.notes.push_back("of the " + ExactDurationText(whole) + " of " + name +
                          "; `waited` is its own time on the path");
    if (!any_records()) {
      table.notes.push_back(
          "there are no process records: begins and ends are those of "
          "operations");
    } else if (!all()[root].ended) {
      table.notes.push_back("the end of " + name +
                            " was not recorded: it is taken to have lasted as "
                            "long as what it did and began");
    }
    Note(&table);
    return {table};
  }

 private:
  // A process whose end was not seen has outlived what it began.
  void RaiseEnds() {
    for (size_t i = all().size(); i-- > 0;) {
      if (all()[i].parent == SIZE_MAX) continue;
      Life& parent = all()[all()[i].parent];
      if (parent.ended) continue;
      parent.end_ns = std::max(parent.end_ns, all()[i].end_ns);
    }
  }

  // Whoever began the whole run (tracefs-run, a shell) may only be told of as
  // its parent: the run is the top then.
  bool IsOutside(size_t i) const {
    const Life& p = all()[i];
    return any_records() && p.parent == SIZE_MAX && !p.recorded &&
           !p.children.empty();
  }

  // Of the tops of trees; SIZE_MAX if there are no processes.
  size_t Longest() const {
    size_t longest = SIZE_MAX;
    uint64_t most_ns = 0;
    for (size_t i = 0; i < all().size(); ++i) {
      const Life& p = all()[i];
      const bool top = p.parent == SIZE_MAX || IsOutside(p.parent);
      if (!top || IsOutside(i)) continue;
      if (longest != SIZE_MAX && p.end_ns - p.begin_ns <= most_ns) continue;
      longest = i;
      most_ns = p.end_ns - p.begin_ns;
    }
    return longest;
  }

  // Backwards from the end: what ended last was waited for, then what ended
  // last before that began; the rest is the process's own.
  void Walk(size_t root, std::map<size_t, uint64_t>* waited) {
    std::vector<std::pair<size_t, uint64_t>> todo = {
        {root, all()[root].end_ns}};
    while (!todo.empty()) {
      const auto [i, until] = todo.back();
      todo.pop_back();
      const Life& p = all()[i];
      std::vector<size_t> children = p.children;
      std::ranges::sort(children, [this](size_t a, size_t b) {
        return all()[a].end_ns > all()[b].end_ns;
      });
      uint64_t now = until;
      for (const size_t c : children) {
        const Life& child = all()[c];
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
