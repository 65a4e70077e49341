#include "tracefs/report/processes.h"

#include <algorithm>
#include <utility>

namespace tracefs::report {
namespace {

constexpr NameTree::Limits kProcessTreeLimits = {
    .nodes = 1 << 16, .name_bytes = size_t{16} << 20, .series_points = 1 << 19};

std::string CommandOf(std::string_view argv, size_t most) {
  std::string command;
  ForEachListed(argv, [&](std::string_view word) {
    if (command.size() > most) return;
    if (!command.empty()) command += ' ';
    command += word.substr(0, most + 1);
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

Processes::Known* Processes::Find(uint32_t pid, uint64_t start, size_t trace) {
  const auto found = by_pid_.find(PidKey(pid, trace));
  if (found == by_pid_.end()) return nullptr;
  Known& known = found->second;
  // Who has no start time is who is known by that pid.
  if (start != 0 && known.start_ticks != 0 && start != known.start_ticks) {
    return nullptr;
  }
  if (known.start_ticks == 0) known.start_ticks = start;
  return &known;
}

NodeId Processes::Begin(uint32_t pid, uint64_t start, uint32_t ppid,
                        size_t trace) {
  NodeId parent = 0;
  if (const Known* const known = Find(ppid, 0, trace); known && ppid != pid) {
    parent = known->node;
  }
  const NodeId node = AddNode(parent);
  facts_[node].pid = pid;
  facts_[node].ppid = ppid;
  by_pid_[PidKey(pid, trace)] = {.start_ticks = start, .node = node};
  return node;
}

NodeId Processes::Get(uint32_t pid, uint64_t start, uint32_t ppid,
                      size_t trace) {
  const Known* const known = Find(pid, start, trace);
  return known != nullptr ? known->node : Begin(pid, start, ppid, trace);
}

void Processes::Seen(NodeId node, uint64_t real_ns) {
  Facts& facts = facts_[node];
  if (real_ns == 0) return;
  if (facts.begin_ns == 0 || (!facts.begun && real_ns < facts.begin_ns)) {
    facts.begin_ns = real_ns;
  }
  if (!facts.ended) facts.end_ns = std::max(facts.end_ns, real_ns);
}

NodeId Processes::Of(const Event& event, std::string_view comm,
                     uint64_t real_ns, size_t trace) {
  if (event.Has(Field::kInferred) && event.Get(Field::kInferred) != 0) {
    return inferred_;
  }
  uint64_t pid = 0;
  uint64_t start = 0;
  uint64_t ppid = 0;
  if (event.caller != nullptr && event.caller->pid != 0) {
    pid = event.caller->pid;
    start = event.caller->start_time;
    ppid = event.caller->ppid;
  } else if (event.Has(Field::kPid)) {
    pid = event.Get(Field::kPid);
    if (event.Has(Field::kPpid)) ppid = event.Get(Field::kPpid);
  } else if (event.Has(Field::kTid)) {
    pid = event.Get(Field::kTid);
  }
  if (pid == 0) return unknown_;
  const NodeId node = Get(static_cast<uint32_t>(pid), start,
                          static_cast<uint32_t>(ppid), trace);
  Facts& facts = facts_[node];
  if (!comm.empty() && facts.name != comm) facts.name = comm;
  const uint64_t took =
      event.Has(Field::kLatency) ? event.Get(Field::kLatency) : 0;
  Seen(node, real_ns);
  // The process is there while its operation runs, but no lie may stretch it
  // for years.
  if (took < uint64_t{3600} * 1'000'000'000)
    Seen(node, tally::AddTo(real_ns, took));
  return node;
}

void Processes::Take(const ProcessRecord& record, size_t trace) {
  any_records_ = true;
  if (record.process.pid == 0) return;
  const NodeId node =
      Get(record.process.pid, record.process.start_ticks, record.ppid, trace);
  switch (record.kind) {
    case ProcessRecord::Kind::kFork: {
      Seen(node, record.real_ns);
      // A thread is no process of its own.
      if (record.child.pid == 0 || record.child.pid == record.process.pid) {
        return;
      }
      NodeId child = 0;
      // Its first operations may have come before.
      if (const Known* const known =
              Find(record.child.pid, record.child.start_ticks, trace);
          known != nullptr && !facts_[known->node].begun &&
          !facts_[known->node].ended) {
        child = known->node;
        // They did not tell whose child it is; no name is looked up again.
        if (tree_.at(child).parent == 0 && node < child) {
          tree_.at(child).parent = node;
          facts_[child].ppid = record.process.pid;
        }
      } else {
        child = Begin(record.child.pid, record.child.start_ticks,
                      record.process.pid, trace);
      }
      Facts& facts = facts_[child];
      facts.begun = true;
      facts.begin_ns = record.real_ns;
      facts.end_ns = std::max(facts.end_ns, record.real_ns);
      if (facts.name.empty()) facts.name = facts_[node].name;
      if (facts.command.empty()) facts.command = facts_[node].command;
      return;
    }
    case ProcessRecord::Kind::kExec:
    case ProcessRecord::Kind::kRunning: {
      Facts& facts = facts_[node];
      if (!record.argv.empty()) {
        facts.command = CommandOf(record.argv, kMaxArguments);
      }
      if (!record.comm.empty()) facts.name = record.comm;
      break;
    }
    case ProcessRecord::Kind::kComm:
      if (!record.comm.empty() && !record.is_thread()) {
        facts_[node].name = record.comm;
      }
      break;
    case ProcessRecord::Kind::kExit: {
      if (record.is_thread()) break;
      Seen(node, record.real_ns);
      Facts& facts = facts_[node];
      facts.ended = true;
      facts.exit_code = record.exit_code;
      facts.signal = record.signal;
      return;
    }
    case ProcessRecord::Kind::kPipes:
      break;
  }
  Seen(node, record.real_ns);
}

void Processes::KeepBounded() {
  if (tree_.HasTooManyPoints()) tree_.DropSeries();
  // Pids of processes that are long gone are forgotten with their nodes.
  if (!tree_.IsFull()) return;
  const std::vector<NodeId> now = tree_.Fold();
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
  for (auto at = by_pid_.begin(); at != by_pid_.end();) {
    Known& known = at->second;
    at = folded[known.node] ? by_pid_.erase(at)
                            : (known.node = now[known.node], std::next(at));
  }
  // The two that stand for others are made anew if they were folded.
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
}

}  // namespace tracefs::report
