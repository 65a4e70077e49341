// ProcessTracker: follows processes through a trace, so that each operation has
// the execution that did it: one program run by one process.
//
// Without process records it knows processes by what their operations tell of
// them: pid, parent and name, not when they began, what they ran and how they
// ended.
//
// Memory: processes that live, and some bytes for each pid that ever was.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tracefs/build/file_step.h"
#include "tracefs/event/process_record.h"

namespace tracefs::build {

// Numbers of processes and of executions, from 0 in order of appearance.
using ProcessId = uint32_t;
using ExecutionId = uint32_t;
inline constexpr uint32_t kNobody = UINT32_MAX;

// What a process runs. Shared: who is forked runs the same as his parent.
struct Image {
  std::string exe;      // what runs; of a script its interpreter
  std::string program;  // what was to run: the script; else empty or as exe
  std::string cwd;
  std::vector<std::string> argv;
  std::string environ;  // each ends with a NUL
  std::string cgroup;

  // What it is called: argv[0]'s program, or what else is known.
  std::string_view Binary() const { return exe.empty() ? program : exe; }
  // argv with blanks between, as patterns of commands see it.
  std::string CommandLine() const;
};

struct Execution {
  ExecutionId id = kNobody;
  uint32_t index = 0;  // 0: as forked; k: after the k-th exec
  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;  // so far
  bool last = false;    // set when its process has ended
  std::shared_ptr<const Image> image;
};

struct Process {
  ProcessId id = kNobody;
  ProcessKey key;
  // The pid; of the n-th other process that had the pid before, 2^22 n more:
  // one number a process in formats that know nothing else.
  uint32_t number = 0;
  ProcessId parent = kNobody;
  uint32_t parent_number = 0;
  ExecutionId parent_execution = kNobody;
  uint32_t parent_index = 0;  // of that execution
  uint32_t parent_pid = 0;    // 0 = not known
  uint64_t clone_flags = 0;
  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;
  bool recorded = false;  // process records tell of it
  bool forked = false;    // its beginning was seen
  bool ended = false;     // and its end
  std::optional<uint32_t> exit_code;
  std::optional<uint32_t> signal;
  std::string comm;           // the last one
  mutable uint64_t mark = 0;  // the listener's own
  Execution now;

  // Its exit code, or 128 and the signal that ended it: a shell's $?. Nothing
  // if neither is known.
  std::optional<uint32_t> ShellStatus() const {
    return signal ? std::optional(128 + *signal) : exit_code;
  }
};

// An execution, for good.
struct ExecutionName {
  ProcessId process = kNobody;
  uint32_t index = 0;
  ExecutionId id = kNobody;
  friend bool operator==(const ExecutionName&, const ExecutionName&) = default;
};

// Hears what happens, in order. The process is as it is then.
class TrackerListener {
 public:
  virtual ~TrackerListener() = default;
  virtual void ProcessBegan(const Process&) {}
  // The record of its fork comes after its first operation: its parent, and
  // whether its beginning was seen, may be known now.
  virtual void ForkTold(const Process&) {}
  // Before its first operation. If a program was run: after the one before it
  // has ended.
  virtual void ExecutionBegan(const Process&) {}
  virtual void Did(const Process&, const FileStep&) {}
  // An operation of a process that has ended, as a rule the closing of its
  // files by the kernel; or, kNobody, of one that is not known.
  virtual void DidWithout(ProcessId, uint32_t /*number*/, const FileStep&) {}
  // Every process record but forks and the ends of threads, once the process is
  // as it says; of an end before that.
  virtual void Ran(const Process&, const ProcessRecord&) {}
  // `process.now` is the execution that ended.
  virtual void ExecutionEnded(const Process&) {}
  // After its last execution.
  virtual void ProcessEnded(const Process&) {}
};

// Used by one thread.
class ProcessTracker {
 public:
  explicit ProcessTracker(TrackerListener& listener) : listener_(listener) {}

  // In order of time.
  void Take(const ProcessRecord& record);
  void Take(const FileStep& step);
  // Ends all that still runs, at the time of what came last.
  void Finish();

  // Forgets processes without reporting an end, to bound memory. Those that
  // occur again begin again.
  void ForgetIf(const std::function<bool(ProcessId)>& gone) {
    std::erase_if(pids_, [&](const auto& it) { return gone(it.second.id); });
  }
  // Whether what is told of it makes no process that is not there yet.
  bool Knows(const ProcessKey& key) const;
  // Whether any process record came.
  bool any_records() const { return any_records_; }

 private:
  // The latest process of a pid, and the one before: what closes a file comes
  // late.
  struct Known {
    ProcessKey key;
    ProcessId id = kNobody;
    uint32_t number = 0;            // Process::number
    std::unique_ptr<Process> live;  // null: it has ended
  };

  // Machines number their processes by themselves.
  static uint64_t PidOf(const ProcessKey& key, uint32_t pid) {
    return uint64_t{key.machine} << 32 | pid;
  }
  static uint64_t PidOf(const ProcessKey& key) { return PidOf(key, key.pid); }
  Process* Find(const ProcessKey& key);
  // Finds it or begins one; null for a process that has ended.
  Process* Get(const ProcessKey& key, uint64_t time_ns, uint32_t ppid);
  Process* Begin(const ProcessKey& key, uint64_t time_ns);
  void SetParent(Process* process, Process* parent);
  void BeginExecution(Process* process, uint64_t time_ns,
                      std::shared_ptr<const Image> image);
  void End(Known* known);
  void Fork(const ProcessRecord& record);
  void Exec(const ProcessRecord& record, Process* process);

  TrackerListener& listener_;
  std::unordered_map<uint64_t, Known> pids_;    // by PidOf
  std::unordered_map<uint32_t, uint32_t> had_;  // processes, by their pid
  const std::shared_ptr<const Image> nothing_ = std::make_shared<Image>();
  ProcessId next_process_ = 0;
  ExecutionId next_execution_ = 0;
  bool any_records_ = false;
};

}  // namespace tracefs::build
