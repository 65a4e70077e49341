// ptrace(2), "Stopped states" and "PTRACE_SEIZE".
#include "tracefs/process/ptrace_companion.h"

#include <linux/sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <utility>

#include "tracefs/base/clock.h"
#include "tracefs/process/task_facts.h"

namespace tracefs {
namespace {

using Kind = ProcessRecord::Kind;

// Whoever is made inherits these.
constexpr long kStopAt = PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                         PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC |
                         PTRACE_O_TRACEEXIT | PTRACE_O_EXITKILL;
// An end that comes before its beginning is kept for at most so many tasks:
// the maker of most tells of them at once, that of some never does.
constexpr size_t kMaxEarly = 4096;

long Ptrace(__ptrace_request request, pid_t tid, long data = 0) {
  return ::ptrace(request, tid, nullptr, data);
}

// Whether it has not been killed out of the stop for this event meanwhile.
bool StandsIn(pid_t tid, int event) {
  siginfo_t stop = {};
  return ::ptrace(PTRACE_GETSIGINFO, tid, nullptr, &stop) == 0 &&
         stop.si_code >> 8 == event;
}

// The message of an event that the task has stopped for; 0 where it was killed
// meanwhile, and has stopped for the next one, with another message.
unsigned long EventMessage(pid_t tid, int event) {
  unsigned long message = 0;
  if (::ptrace(PTRACE_GETEVENTMSG, tid, nullptr, &message) != 0 ||
      !StandsIn(tid, event)) {
    return 0;
  }
  return message;
}

std::string_view FileName(std::string_view path) {
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

const int PtraceCompanion::kStopEvent = PTRACE_EVENT_STOP;

bool PtraceCompanion::Stops(int signal) {
  return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN ||
         signal == SIGTTOU;
}

Status PtraceCompanion::Seize(pid_t child) {
  if (Ptrace(PTRACE_SEIZE, child, kStopAt) != 0) {
    return Status::System(errno, "following the command with ptrace(2)");
  }
  Begin(child, static_cast<uint32_t>(child), static_cast<uint32_t>(::getpid()));
  ProcessRecord record =
      Make(Kind::kFork, processes_.at(static_cast<uint32_t>(child)), child);
  // What this process makes it has made by fork(2).
  record.child = record.process;
  record.child_tid = record.tid;
  record.process = {.pid = static_cast<uint32_t>(::getpid()), .start_ticks = 0};
  if (const auto self = ReadTaskStat(record.process.pid)) {
    record.process.start_ticks = self->start_ticks;
    record.ppid = self->ppid;
  }
  record.tid = record.process.pid;
  record.clone_flags = 0;
  options_.take(record);
  return Status::Ok();
}

void PtraceCompanion::Begin(pid_t tid, uint32_t pid, uint32_t ppid) {
  tasks_[tid].pid = pid;
  Process& process = processes_[pid];
  process.threads.insert(tid);
  if (process.key.pid != 0) return;  // a thread of it
  process.key.pid = pid;
  process.ppid = ppid;
  if (const auto stat = ReadTaskStat(pid)) {
    process.key.start_ticks = stat->start_ticks;
    process.ppid = stat->ppid;
    process.comm = stat->comm;
    process.memory = stat->memory;
  }
  // The number may have been another's.
  if (options_.changed) options_.changed(pid);
  ++counts_.processes;
}

ProcessRecord PtraceCompanion::Make(Kind kind, const Process& process,
                                    pid_t tid) const {
  ProcessRecord record;
  record.kind = kind;
  record.process = process.key;
  record.tid = static_cast<uint32_t>(tid);
  record.ppid = process.ppid;
  record.source = ProcessSource::kPtrace;
  return record;
}

bool PtraceCompanion::Handle(pid_t tid, int status) {
  const bool ended = WIFEXITED(status) || WIFSIGNALED(status);
  if (!tasks_.contains(tid)) {
    // Made by a tracee that has not told of it yet: it waits for that.
    if (!ended && !WIFSTOPPED(status)) return false;
    if (early_.size() >= kMaxEarly) ForgetEarlyEnds();
    early_[tid] = {.status = status, .not_by = {}};
    if (!ended) LetOrphansGoOn();
    return true;
  }
  if (ended) {
    OnEnd(tid, status);
  } else if (WIFSTOPPED(status)) {
    OnStop(tid, status);
  }
  for (auto& [other, early] : early_) early.not_by.insert(tid);
  if (lost_makers_ && !early_.empty()) LetOrphansGoOn();
  return true;
}

void PtraceCompanion::OnStop(pid_t tid, int status) {
  const int signal = WSTOPSIG(status);
  switch (status >> 16) {
    case PTRACE_EVENT_FORK:
    case PTRACE_EVENT_VFORK:
    case PTRACE_EVENT_CLONE:
      OnFork(tid, status >> 16);
      return;
    case PTRACE_EVENT_EXEC:
      OnExec(tid);
      return;
    case PTRACE_EVENT_EXIT:
      OnExiting(tid);
      return;
    case PTRACE_EVENT_STOP:
      if (Stops(signal)) {
        // It stays stopped until somebody lets it go on.
        Ptrace(PTRACE_LISTEN, tid);
      } else {
        GoOn(tid, 0);
      }
      return;
    default:
      GoOn(tid, signal);  // a signal that is on its way to it
  }
}

void PtraceCompanion::GoOn(pid_t tid, int signal) {
  // One that was killed meanwhile says so by itself.
  static_cast<void>(Ptrace(PTRACE_CONT, tid, signal));
}

void PtraceCompanion::OnFork(pid_t tid, int event) {
  TellFork(tid, static_cast<pid_t>(EventMessage(tid, event)));
  GoOn(tid, 0);
}

// What the child did before its maker told of it comes after that.
void PtraceCompanion::TellFork(pid_t tid, pid_t child) {
  if (child == 0 || tasks_.contains(child)) return;
  const std::optional<uint64_t> flags =
      ReadCloneFlags(static_cast<uint32_t>(tid));
  const uint32_t pid = tasks_.at(tid).pid;
  // Without flags: whose thread group it is in tells.
  const bool thread = flags ? (*flags & CLONE_THREAD) != 0
                            : ::syscall(SYS_tgkill, pid, child, 0) == 0 &&
                                  child != static_cast<pid_t>(pid);
  const auto child_pid = thread ? pid : static_cast<uint32_t>(child);
  Begin(child, child_pid, pid);
  const Process& maker = processes_.at(pid);
  Process& made = processes_.at(child_pid);
  // It has its maker's memory, or a copy, until it runs another program: which
  // it may have begun to.
  if (!thread) made.memory = maker.memory;
  ProcessRecord record = Make(Kind::kFork, maker, tid);
  record.child = made.key;
  record.child_tid = static_cast<uint32_t>(child);
  record.clone_flags = flags;
  record.incomplete = !flags || record.child.start_ticks == 0;
  options_.take(record);
  const auto early = early_.extract(child);
  if (!early) return;
  // Whose end was taken is gone: one that is there has an old number.
  const int did = early.mapped().status;
  if (!WIFSTOPPED(did) && ReadTaskOwner(static_cast<uint32_t>(child))) return;
  static_cast<void>(Handle(child, did));
}

void PtraceCompanion::ForgetEarlyEnds() {
  std::erase_if(early_,
                [](const auto& one) { return !WIFSTOPPED(one.second.status); });
}

// What a task has left: it was killed, or ended by another thread, before it
// could tell of these.
void PtraceCompanion::TellUntold(pid_t tid,
                                 const std::vector<uint32_t>& children) {
  for (const uint32_t child : children) {
    // Children already reported, and ended, have no tracer any more.
    const auto owner = ReadTaskOwner(child);
    const bool follows =
        owner && owner->tracer == static_cast<uint32_t>(::getpid());
    if (follows || early_.contains(static_cast<pid_t>(child))) {
      TellFork(tid, static_cast<pid_t>(child));
    }
  }
}

// A task that ends within clone(2).
void PtraceCompanion::TellUntoldForks(pid_t tid, uint64_t flags) {
  const uint32_t pid = tasks_.at(tid).pid;
  if ((flags & CLONE_PARENT) == 0) {
    TellUntold(tid, ReadChildren(pid, static_cast<uint32_t>(tid)));
    return;
  }
  // They are its parent's children. One that the parent made itself, and has
  // not told of in this moment either, is taken for one of these.
  const auto above = processes_.find(processes_.at(pid).ppid);
  if (above == processes_.end()) return;
  const std::set<pid_t> threads = above->second.threads;
  for (const pid_t thread : threads) {
    TellUntold(tid, ReadChildren(above->first, static_cast<uint32_t>(thread)));
  }
}

// Whether this task may be the maker of the early one, and still about to say
// so. `as_parent`: it is a task of what is the other's parent by now, else of
// another child of that.
bool PtraceCompanion::MayTellOf(pid_t maker, const Early& early,
                                bool as_parent) const {
  if (early.not_by.contains(maker)) return false;
  bool running = false;
  const std::optional<uint64_t> flags =
      ReadCloneFlags(static_cast<uint32_t>(maker), &running);
  // Where it is when it runs nobody can say: it stops for this, and before that
  // for whatever it has to tell.
  if (running) Ptrace(PTRACE_INTERRUPT, maker);
  return running || (flags && (as_parent || (*flags & CLONE_PARENT) != 0));
}

// Whether nobody is left to tell of it: its maker is gone; or it is a thread
// that ends with its process before it has run, and its maker with it. The
// process ends after its last thread.
bool PtraceCompanion::IsOrphan(pid_t tid, const Early& early,
                               const TaskOwner& owner) const {
  const bool thread = owner.pid != static_cast<uint32_t>(tid);
  if (thread && early.status >> 16 == PTRACE_EVENT_EXIT) return true;
  if (!processes_.contains(owner.ppid) && !processes_.contains(owner.pid)) {
    return true;
  }
  // One that we know has made it, or has become its parent when its maker was
  // killed.
  if (!lost_makers_) return false;
  const uint32_t parent = thread ? owner.pid : owner.ppid;
  bool told = false;
  for (const auto& [pid, process] : processes_) {
    if (pid != parent && (thread || process.ppid != parent)) continue;
    for (const pid_t maker : process.threads) {
      told |= MayTellOf(maker, early, pid == parent);
    }
  }
  return !told;
}

// They go on without a record.
void PtraceCompanion::LetOrphansGoOn() {
  std::vector<std::pair<pid_t, int>> orphans;
  for (const auto& [tid, early] : early_) {
    if (!WIFSTOPPED(early.status)) continue;
    const auto owner = ReadTaskOwner(static_cast<uint32_t>(tid));
    if (!owner || !IsOrphan(tid, early, *owner)) continue;
    Begin(tid, owner->pid, owner->ppid);
    orphans.emplace_back(tid, early.status);
  }
  for (const auto& [tid, status] : orphans) {
    early_.erase(tid);
    OnStop(tid, status);
  }
}

void PtraceCompanion::OnExec(pid_t tid) {
  // The other threads are gone; the one that called has the leader's number
  // now.
  const auto former = static_cast<pid_t>(EventMessage(tid, PTRACE_EVENT_EXEC));
  const uint32_t pid = tasks_.at(tid).pid;
  Process& process = processes_.at(pid);
  if (former != tid && former != 0) {
    process.threads.erase(former);
    tasks_.erase(former);
    if (options_.changed) options_.changed(static_cast<uint32_t>(former));
  }
  if (former == 0) ForgetOtherThreads(process, tid);
  process.leader_ended = false;
  const TaskFacts facts = TellExec(process, tid);
  if (options_.let_go.contains(FileName(facts.exe)) ||
      options_.let_go.contains(FileName(facts.program))) {
    ++counts_.let_go;
    Ptrace(PTRACE_DETACH, tid);
    Forget(tid);
    return;
  }
  GoOn(tid, 0);
}

// It was killed before it could say which of its threads is left.
void PtraceCompanion::ForgetOtherThreads(Process& process, pid_t tid) {
  for (const pid_t thread : process.threads) {
    if (thread != tid) tasks_.erase(thread);
  }
  process.threads = {tid};
}

TaskFacts PtraceCompanion::TellExec(Process& process, pid_t tid) {
  process.executed = true;
  if (options_.changed) options_.changed(process.key.pid);
  TaskFacts facts = ReadTaskFacts(process.key.pid, options_.environment);
  if (facts.process.start_ticks == 0) facts.process = process.key;
  process.comm = facts.comm;
  process.memory = facts.memory;
  ProcessRecord record = Make(Kind::kExec, process, tid);
  facts.PutInto(&record);
  ++counts_.programs;
  options_.take(record);
  TellPipes(process, tid);
  return facts;
}

void PtraceCompanion::TellPipes(Process& process, pid_t tid) {
  ProcessRecord record = Make(Kind::kPipes, process, tid);
  record.incomplete = !ReadPipes(process.key.pid, &record.pipes);
  process.pipes_told = true;
  if (record.pipes.empty() && !record.incomplete) return;
  options_.take(record);
}

void PtraceCompanion::OnExiting(pid_t tid) {
  const uint32_t pid = tasks_.at(tid).pid;
  Process& process = processes_.at(pid);
  // A killed task no longer stops for the event it was about to report, nor
  // does one that another thread's exit_group(2) ends.
  const std::optional<uint64_t> flags =
      ReadCloneFlags(static_cast<uint32_t>(tid));
  if (flags) TellUntoldForks(tid, *flags);
  if ((EventMessage(tid, PTRACE_EVENT_EXIT) & 0x7f) == SIGKILL) {
    if (!flags) {
      TellUntold(tid, ReadChildren(pid, static_cast<uint32_t>(tid)));
    }
    const auto stat = ReadTaskStat(pid);
    if (stat && stat->memory.known() && process.memory.known() &&
        stat->memory != process.memory) {
      ForgetOtherThreads(process, tid);
      TellExec(process, tid);
    }
  }
  const bool leader = tid == static_cast<pid_t>(pid);
  if (leader && !process.executed && !process.pipes_told) {
    TellPipes(process, tid);
  }
  // What it had made was asked while it stood here.
  tasks_.at(tid).told_of_all = StandsIn(tid, PTRACE_EVENT_EXIT);
  GoOn(tid, 0);
}

void PtraceCompanion::TellEnd(const Process& process, pid_t tid, int status) {
  ProcessRecord record = Make(Kind::kExit, process, tid);
  if (WIFSIGNALED(status)) {
    record.signal = static_cast<uint32_t>(WTERMSIG(status));
    record.core_dumped = WCOREDUMP(status);
  } else {
    record.exit_code = static_cast<uint32_t>(WEXITSTATUS(status));
  }
  if (!record.is_thread() && status != 0) ++counts_.failed;
  options_.take(record);
}

void PtraceCompanion::OnEnd(pid_t tid, int status) {
  const uint32_t pid = tasks_.at(tid).pid;
  Process& process = processes_.at(pid);
  if (!tasks_.at(tid).told_of_all) lost_makers_ = true;
  process.threads.erase(tid);
  tasks_.erase(tid);
  if (options_.changed) options_.changed(static_cast<uint32_t>(tid));
  const bool leader = tid == static_cast<pid_t>(pid);
  if (leader) {
    // The kernel tells of it when all other threads have ended.
    process.leader_ended = true;
    process.status = status;
  } else {
    TellEnd(process, tid, status);
  }
  if (!process.threads.empty()) return;
  if (process.leader_ended) {
    TellEnd(process, static_cast<pid_t>(pid), process.status);
  }
  processes_.erase(pid);
  if (!early_.empty()) LetOrphansGoOn();
}

void PtraceCompanion::Forget(pid_t tid) {
  const auto found = tasks_.find(tid);
  if (found == tasks_.end()) return;
  const auto process = processes_.find(found->second.pid);
  tasks_.erase(found);
  if (process == processes_.end()) return;
  process->second.threads.erase(tid);
  if (process->second.threads.empty()) processes_.erase(process);
}

std::vector<std::string> PtraceCompanion::Names() const {
  std::vector<std::string> names;
  for (const auto& [pid, process] : processes_) {
    names.push_back(process.comm + " (" + std::to_string(pid) + ')');
  }
  return names;
}

size_t PtraceCompanion::LetAllGo() {
  constexpr uint64_t kPatienceNs = 5 * kNsPerSecond;
  for (const auto& [tid, status] : std::exchange(early_, {})) {
    Ptrace(PTRACE_DETACH, tid);
  }
  for (const auto& [tid, task] : tasks_) Ptrace(PTRACE_INTERRUPT, tid);
  const uint64_t begin = MonotonicNs();
  while (!tasks_.empty() && MonotonicNs() - begin < kPatienceNs) {
    int status = 0;
    const pid_t tid = ::waitpid(-1, &status, __WALL | WNOHANG);
    if (tid < 0) break;
    if (tid == 0) {
      ::usleep(1000);
      continue;
    }
    if (!WIFSTOPPED(status)) {
      static_cast<void>(Handle(tid, status));
      continue;
    }
    const int event = status >> 16;
    if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK ||
        event == PTRACE_EVENT_CLONE) {
      const auto child = static_cast<pid_t>(EventMessage(tid, event));
      if (child != 0) {
        Begin(child, static_cast<uint32_t>(child), tasks_[tid].pid);
      }
    }
    // A stopped one is left stopped: a signal comes with it.
    const int signal = event == 0 ? WSTOPSIG(status)
                       : event == PTRACE_EVENT_STOP && Stops(WSTOPSIG(status))
                           ? SIGSTOP
                           : 0;
    Ptrace(PTRACE_DETACH, tid, signal);
    Forget(tid);
  }
  return processes_.size();
}

}  // namespace tracefs
