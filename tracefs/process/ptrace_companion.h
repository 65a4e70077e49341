// PtraceCompanion: follows a command and all its descendants, exactly and
// without privileges: ptrace(2) with stops at fork, vfork, clone, exec and exit
// only. No system call is stopped at. A process that is killed while it forks
// or runs a program does not stop for that; its stop at the exit makes up for
// it.
//
// A process has one tracer at most. Who traces others himself (a debugger) is
// let go when he begins to run, with all that he will start: Options::let_go.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/event/process_record.h"
#include "tracefs/process/task_facts.h"

namespace tracefs {

// Used by one thread, the one that made it: tracees belong to a thread.
class PtraceCompanion {
 public:
  struct Options {
    bool environment = false;
    // Names of programs that trace others; of their files, without directories.
    std::set<std::string, std::less<>> let_go;
    // Gets each record, without a time: it is to be of now.
    std::function<void(ProcessRecord&)> take;
    // Called when this task or process is not what it was (it runs another
    // program, ended, or is new), before it goes on. May be empty.
    std::function<void(uint32_t tid)> changed = {};
  };
  struct Counts {
    uint64_t processes = 0;  // that began to be followed
    uint64_t programs = 0;   // run
    uint64_t failed = 0;     // ended with another status than 0
    uint64_t let_go = 0;
  };

  explicit PtraceCompanion(Options options) : options_(std::move(options)) {}
  PtraceCompanion(const PtraceCompanion&) = delete;
  PtraceCompanion& operator=(const PtraceCompanion&) = delete;

  // Of a stopped task: the event of its wait status, and the signals of those
  // that it stays stopped with.
  static const int kStopEvent;
  static bool Stops(int signal);

  // Begins with this child of the caller's. It dies with its tracer. kSystem
  // with EPERM where it cannot be traced.
  Status Seize(pid_t child);

  // Takes what waitpid(2) with __WALL said. False if the task is none of its
  // own, as far as it knows.
  bool Handle(pid_t tid, int wait_status);

  // Tasks that are followed now.
  size_t live() const { return tasks_.size(); }
  bool follows(pid_t tid) const { return tasks_.contains(tid); }
  // "sh (4711)", of each process.
  std::vector<std::string> Names() const;
  // Lets all go on without it. Those that do not stop for it within a while
  // remain, and die when this process ends: how many.
  size_t LetAllGo();

  const Counts& counts() const { return counts_; }

 private:
  struct Task {
    uint32_t pid = 0;          // of its process
    bool told_of_all = false;  // that it made, before its end
  };
  // A task that stopped, or ended, before its maker told of it.
  struct Early {
    int status = 0;  // of waitpid(2)
    // Tasks that have stopped since: none has made it and not told of it.
    std::set<pid_t> not_by;
  };
  struct Process {
    ProcessKey key;
    uint32_t ppid = 0;
    std::string comm;
    TaskMemory memory;  // of the program last told of
    std::set<pid_t> threads;
    int status = 0;  // of the leader, once it has ended
    bool leader_ended = false;
    bool executed = false;  // since it was made
    bool pipes_told = false;
  };

  void Begin(pid_t tid, uint32_t pid, uint32_t ppid);
  void OnStop(pid_t tid, int status);
  void OnFork(pid_t tid, int event);
  void OnExec(pid_t tid);
  void OnExiting(pid_t tid);
  void OnEnd(pid_t tid, int status);
  void GoOn(pid_t tid, int signal);
  void TellFork(pid_t tid, pid_t child);
  void TellUntold(pid_t tid, const std::vector<uint32_t>& children);
  void TellUntoldForks(pid_t tid, uint64_t flags);
  void ForgetEarlyEnds();
  TaskFacts TellExec(Process& process, pid_t tid);
  void ForgetOtherThreads(Process& process, pid_t tid);
  void LetOrphansGoOn();
  bool IsOrphan(pid_t tid, const Early& early, const TaskOwner& owner) const;
  bool MayTellOf(pid_t maker, const Early& early, bool as_parent) const;
  void TellPipes(Process& process, pid_t tid);
  void TellEnd(const Process& process, pid_t tid, int status);
  void Forget(pid_t tid);
  ProcessRecord Make(ProcessRecord::Kind kind, const Process& process,
                     pid_t tid) const;

  Options options_;
  Counts counts_;
  std::map<pid_t, Task> tasks_;
  std::map<uint32_t, Process> processes_;
  std::map<pid_t, Early> early_;
  // A task has ended that may have made others and not told of them.
  bool lost_makers_ = false;
};

}  // namespace tracefs
