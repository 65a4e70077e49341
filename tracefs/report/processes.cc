#include "tracefs/report/processes.h"

#include <algorithm>
#include <utility>

#include "tracefs/base/join.h"
#include "tracefs/build/record_step.h"

namespace tracefs::report {
namespace {

constexpr NameTree::Limits kProcessTreeLimits = {
    .nodes = 1 << 16, .name_bytes = size_t{16} << 20, .series_points = 1 << 19};

std::string CommandOf(std::string_view argv, size_t most) {
  std::string command;
  ForEachListed(argv, [&](std::string_view word) {
    if (command.size() > most) return;
    AppendWord(word.substr(0, most + 1), " ", &command);
  });
  if (!command.empty() && command.back() == ' ') command.pop_back();
  if (command.size() > most) command.resize(most);
  return command;
}

}  // namespace

Processes::Processes() : tree_(kProcessTreeLimits), facts_(1) {
  unknown_ = AddNode(0);
  facts_[unknown_].name = "(callers not recorded)";
  inferred_ = AddNode(0);
  facts_[inferred_].name = "(callers only inferred)";
}

NodeId Processes::AddNode(NodeId parent) {
  const NodeId node = tree_.Child(parent, std::to_string(processes_++));
  facts_.resize(tree_.size());
  return node;
}

Processes::OfMachine& Processes::Of(size_t machine) {
  if (machine >= machines_.size()) machines_.resize(machine + 1);
  if (machines_[machine] == nullptr) {
    machines_[machine] = std::make_unique<OfMachine>(this);
  }
  return *machines_[machine];
}

NodeId Processes::OfMachine::NodeOf(build::ProcessId id) const {
  const auto found = nodes_.find(id);
  return found == nodes_.end() ? 0 : found->second;
}

NodeId Processes::OfMachine::NodeOf(const build::Process& process) const {
  if (process.mark >> 32 != numbering_) {
    process.mark = uint64_t{numbering_} << 32 | NodeOf(process.id);
  }
  return static_cast<NodeId>(process.mark);
}

void Processes::OfMachine::ProcessBegan(const build::Process& process) {
  const NodeId parent = NodeOf(process.parent);
  const NodeId node = all_.AddNode(parent);
  nodes_[process.id] = node;
  Facts& facts = all_.facts_[node];
  facts.pid = process.key.pid;
  facts.ppid = process.parent_pid;
  facts.name = process.comm;
  facts.begun = process.forked;
  all_.Seen(node, real_ns_);
  if (!process.forked || parent == 0) return;
  facts.command = all_.facts_[parent].command;
  all_.Seen(parent, real_ns_);
}

void Processes::OfMachine::ForkTold(const build::Process& process) {
  const NodeId node = NodeOf(process.id);
  if (node == 0) return;
  Facts& facts = all_.facts_[node];
  if (process.forked && !facts.begun) {
    facts.begun = true;
    facts.begin_ns = real_ns_;
    facts.end_ns = std::max(facts.end_ns, real_ns_);
  }
  const NodeId parent = NodeOf(process.parent);
  // No name is looked up again in the tree; parents come before children.
  if (all_.tree_.at(node).parent != 0 || parent == 0 || parent > node) return;
  all_.tree_.at(node).parent = parent;
  facts.ppid = process.parent_pid;
  if (facts.name.empty()) facts.name = all_.facts_[parent].name;
  if (facts.command.empty()) facts.command = all_.facts_[parent].command;
}

void Processes::OfMachine::Did(const build::Process& process,
                               const build::FileStep& step) {
  found_ = NodeOf(process);
  if (found_ == 0) return;
  Facts& facts = all_.facts_[found_];
  if (facts.name != process.comm) facts.name = process.comm;
  all_.Seen(found_, real_ns_);
  // The process is there while its operation runs, but no lie may stretch it
  // for years.
  if (step.duration_ns < uint64_t{3600} * 1'000'000'000) {
    all_.Seen(found_, tally::AddTo(real_ns_, step.duration_ns));
  }
}

void Processes::OfMachine::DidWithout(build::ProcessId id, uint32_t /*number*/,
                                      const build::FileStep& /*step*/) {
  found_ = NodeOf(id);
}

void Processes::OfMachine::Ran(const build::Process& process,
                               const ProcessRecord& record) {
  const NodeId node = NodeOf(process.id);
  if (node == 0) return;
  Facts& facts = all_.facts_[node];
  using Kind = ProcessRecord::Kind;
  const bool program =
      record.kind == Kind::kExec || record.kind == Kind::kRunning;
  if (program && !record.argv.empty()) {
    facts.command = CommandOf(record.argv, kMaxArguments);
  }
  facts.name = process.comm;
  all_.Seen(node, real_ns_);
}

void Processes::OfMachine::ProcessEnded(const build::Process& process) {
  const NodeId node = NodeOf(process.id);
  if (node == 0) return;
  Facts& facts = all_.facts_[node];
  facts.ended = process.ended;
  facts.exit_code = process.exit_code;
  facts.signal = process.signal;
}

NodeId Processes::OfMachine::Take(const build::FileStep& step,
                                  uint64_t real_ns) {
  real_ns_ = real_ns;
  tracker_.Take(step);
  return found_;
}

void Processes::OfMachine::Take(const ProcessRecord& record) {
  real_ns_ = record.real_ns;
  tracker_.Take(record);
}

void Processes::OfMachine::Renumber(const std::vector<NodeId>& now,
                                    const std::vector<bool>& folded) {
  std::erase_if(nodes_, [&](const auto& it) { return folded[it.second]; });
  for (auto& [id, node] : nodes_) node = now[node];
  ++numbering_;
  tracker_.ForgetIf(
      [this](build::ProcessId id) { return !nodes_.contains(id); });
}

void Processes::Seen(NodeId node, uint64_t real_ns) {
  Facts& facts = facts_[node];
  if (real_ns == 0) return;
  if (facts.begin_ns == 0 || (!facts.begun && real_ns < facts.begin_ns)) {
    facts.begin_ns = real_ns;
  }
  if (!facts.ended) facts.end_ns = std::max(facts.end_ns, real_ns);
}

NodeId Processes::Of(const format::Record& record, uint64_t real_ns,
                     size_t machine) {
  const Event& event = record.event;
  if (event.GetOr0(Field::kInferred) != 0) return inferred_;
  build::FileStep step;
  build::SetCaller(record, &step);
  if (step.process.pid == 0) return unknown_;
  step.time_ns = event.GetOr0(Field::kTime);
  step.duration_ns = event.GetOr0(Field::kLatency);
  step.comm = record.Text(Field::kComm);
  const NodeId node = Of(machine).Take(step, real_ns);
  return node == 0 ? unknown_ : node;
}

void Processes::Take(const ProcessRecord& record, size_t machine) {
  any_records_ = true;
  Of(machine).Take(record);
}

std::vector<NodeId> Processes::KeepBounded() {
  if (tree_.HasTooManyPoints()) tree_.DropSeries();
  // Pids of processes that are long gone are forgotten with their nodes.
  if (!tree_.IsFull()) return {};
  std::vector<NodeId> now = tree_.Fold();
  std::vector<Facts> facts(tree_.size());
  std::vector<bool> taken(tree_.size());
  std::vector<bool> folded(now.size());
  for (size_t i = 0; i < now.size(); ++i) {
    // The first one that has a number is the one that was kept: its parent has
    // a smaller number, and what was folded into it a larger one.
    folded[i] = taken[now[i]];
    if (folded[i]) continue;
    taken[now[i]] = true;
    facts[now[i]] = std::move(facts_[i]);
  }
  facts_ = std::move(facts);
  for (const std::unique_ptr<OfMachine>& machine : machines_) {
    if (machine != nullptr) machine->Renumber(now, folded);
  }
  // The two that represent others are rebuilt if they were folded.
  const auto again = [&](NodeId* node, const char* name) {
    if (!folded[*node]) {
      *node = now[*node];
      return;
    }
    *node = AddNode(0);
    facts_[*node].name = name;
  };
  again(&unknown_, "(callers not recorded)");
  again(&inferred_, "(callers only inferred)");
  return now;
}

}  // namespace tracefs::report
