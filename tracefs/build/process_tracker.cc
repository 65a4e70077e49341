#include "tracefs/build/process_tracker.h"

#include <algorithm>
#include <utility>

#include "tracefs/base/join.h"

namespace tracefs::build {
namespace {

// A start time is given in hundredths of a second, and not by every source.
bool MayBeSame(const ProcessKey& a, const ProcessKey& b) {
  return a.pid == b.pid && (a.start_ticks == b.start_ticks ||
                            a.start_ticks == 0 || b.start_ticks == 0);
}

std::shared_ptr<const Image> ImageOf(const ProcessRecord& record,
                                     const Image& before) {
  auto image = std::make_shared<Image>();
  image->exe = record.exe;
  image->program = record.program;
  image->cwd = record.cwd.empty() ? before.cwd : std::string(record.cwd);
  image->cgroup =
      record.cgroup.empty() ? before.cgroup : std::string(record.cgroup);
  ForEachListed(record.argv, [&](std::string_view argument) {
    image->argv.emplace_back(argument);
  });
  image->environ = record.environ;
  return image;
}

}  // namespace

std::string Image::CommandLine() const { return JoinWords(argv, " "); }

Process* ProcessTracker::Find(const ProcessKey& key) {
  const auto found = pids_.find(PidOf(key));
  if (found == pids_.end() || !MayBeSame(found->second.key, key)) {
    return nullptr;
  }
  return found->second.live.get();
}

bool ProcessTracker::Knows(const ProcessKey& key) const {
  const auto found = pids_.find(PidOf(key));
  return found != pids_.end() &&
         (MayBeSame(found->second.key, key) ||
          key.start_ticks < found->second.key.start_ticks);
}

Process* ProcessTracker::Begin(const ProcessKey& key, uint64_t time_ns) {
  Known& known = pids_[PidOf(key)];
  // The previous process with this number has ended, seen or not.
  if (known.live != nullptr) End(&known);
  known.number = key.pid + (had_[key.pid]++ << ProcessKey::kPidBits);
  known.key = key;
  known.id = next_process_++;
  known.live = std::make_unique<Process>();
  Process* const process = known.live.get();
  process->id = known.id;
  process->key = key;
  process->number = known.number;
  process->begin_ns = process->end_ns = time_ns;
  process->now.image = nothing_;
  return process;
}

Process* ProcessTracker::Get(const ProcessKey& key, uint64_t time_ns,
                             uint32_t ppid) {
  const auto found = pids_.find(PidOf(key));
  if (found != pids_.end()) {
    Known& known = found->second;
    if (MayBeSame(known.key, key)) return known.live.get();
    // One that ended long ago, heard of late.
    if (key.start_ticks < known.key.start_ticks) return nullptr;
  }
  Process* const process = Begin(key, time_ns);
  if (ppid != 0 && ppid != key.pid) {
    process->parent_pid = ppid;
    if (const auto at = pids_.find(PidOf(key, ppid)); at != pids_.end()) {
      SetParent(process, at->second.live.get());
    }
  }
  listener_.ProcessBegan(*process);
  BeginExecution(process, time_ns, process->now.image);
  return process;
}

void ProcessTracker::SetParent(Process* process, Process* parent) {
  if (parent == nullptr || parent == process) return;
  process->parent = parent->id;
  process->parent_pid = parent->key.pid;
  process->parent_number = parent->number;
  process->parent_execution = parent->now.id;
  process->parent_index = parent->now.index;
}

void ProcessTracker::BeginExecution(Process* process, uint64_t time_ns,
                                    std::shared_ptr<const Image> image) {
  const bool first = process->now.id == kNobody;
  if (!first) {
    process->now.end_ns = std::max(process->now.begin_ns, time_ns);
    listener_.ExecutionEnded(*process);
  }
  process->now.id = next_execution_++;
  process->now.index = first ? 0 : process->now.index + 1;
  process->now.begin_ns = process->now.end_ns = time_ns;
  process->now.image = std::move(image);
  listener_.ExecutionBegan(*process);
}

void ProcessTracker::End(Known* known) {
  const std::unique_ptr<Process> process = std::move(known->live);
  process->now.end_ns = process->end_ns;
  process->now.last = true;
  listener_.ExecutionEnded(*process);
  listener_.ProcessEnded(*process);
}

void ProcessTracker::Fork(const ProcessRecord& record) {
  // A thread is no process.
  if (record.child.pid == 0 || record.child.pid == record.process.pid) return;
  Process* const parent = Get(record.process, record.time_ns, record.ppid);
  // Its first operation may have been recorded before this.
  if (Process* const early = Find(record.child); early != nullptr) {
    if (!early->forked && early->begin_ns + 1'000'000'000 > record.time_ns) {
      early->forked = early->recorded = true;
    }
    // One that is younger began later, or is a lie.
    if (early->parent == kNobody && parent != nullptr &&
        parent->id < early->id) {
      SetParent(early, parent);
    }
    listener_.ForkTold(*early);
    return;
  }
  Process* const child = Begin(record.child, record.time_ns);
  child->forked = child->recorded = true;
  child->clone_flags = record.clone_flags.value_or(0);
  child->parent_pid = record.process.pid;
  if (parent != nullptr) {
    SetParent(child, parent);
    child->now.image = parent->now.image;
    child->comm = parent->comm;
  }
  listener_.ProcessBegan(*child);
  BeginExecution(child, record.time_ns, child->now.image);
}

void ProcessTracker::Exec(const ProcessRecord& record, Process* process) {
  std::shared_ptr<const Image> image = ImageOf(record, *process->now.image);
  if (record.kind == ProcessRecord::Kind::kRunning && process->now.index == 0 &&
      process->now.image->argv.empty()) {
    // It runs what it ran before anybody looked.
    process->now.image = std::move(image);
  } else {
    BeginExecution(process, record.time_ns, std::move(image));
  }
}

void ProcessTracker::Take(const ProcessRecord& record) {
  any_records_ = true;
  using Kind = ProcessRecord::Kind;
  if (record.kind == Kind::kFork) return Fork(record);
  if (record.process.pid == 0) return;
  if (record.kind == Kind::kExit && record.is_thread()) return;
  Process* const process = Get(record.process, record.time_ns, record.ppid);
  if (process == nullptr) return;
  process->recorded = true;
  process->end_ns = std::max(process->end_ns, record.time_ns);
  if (process->key.start_ticks == 0) process->key = record.process;
  if (!record.comm.empty() && !record.is_thread()) process->comm = record.comm;
  if (record.kind == Kind::kExec || record.kind == Kind::kRunning) {
    Exec(record, process);
  }
  listener_.Ran(*process, record);
  if (record.kind == Kind::kExit) {
    process->ended = true;
    process->exit_code = record.exit_code;
    process->signal = record.signal;
    process->end_ns = record.time_ns;
    End(&pids_[PidOf(record.process)]);
  }
}

void ProcessTracker::Take(const FileStep& step) {
  const uint64_t end_ns = step.time_ns + step.duration_ns;
  Process* const process = step.process.pid == 0
                               ? nullptr
                               : Get(step.process, step.time_ns, step.ppid);
  if (process == nullptr) {
    const auto known = pids_.find(PidOf(step.process));
    const bool ended =
        known != pids_.end() && MayBeSame(known->second.key, step.process);
    listener_.DidWithout(ended ? known->second.id : kNobody,
                         ended ? known->second.number : 0, step);
    return;
  }
  process->end_ns = std::max(process->end_ns, end_ns);
  process->now.end_ns = std::max(process->now.end_ns, end_ns);
  if (!step.comm.empty() && !process->recorded) process->comm = step.comm;
  listener_.Did(*process, step);
}

void ProcessTracker::Finish() {
  std::vector<Known*> live;
  for (auto& [pid, known] : pids_) {
    if (known.live != nullptr) live.push_back(&known);
  }
  std::sort(live.begin(), live.end(),
            [](const Known* a, const Known* b) { return a->id < b->id; });
  for (Known* known : live) End(known);
  pids_.clear();
}

}  // namespace tracefs::build
