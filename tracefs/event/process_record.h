// ProcessRecord: one thing that happened to a process: it was made, ran another
// program, ended. Told beside operations by whoever follows processes: a ptrace
// companion, the kernel's proc connector or its trace points.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tracefs {

// A process for good: a pid that is used again comes with another start time.
struct ProcessKey {
  // Larger pids do not exist (PID_MAX_LIMIT).
  static constexpr unsigned kPidBits = 22;

  uint32_t pid = 0;          // thread group; 0 = not known
  uint64_t start_ticks = 0;  // since boot, of 1/100 s; 0 = not known
  // Which of several that are read together (format::TraceOrigin); readers set
  // it.
  uint32_t machine = 0;

  // One number of both; 0 = not known.
  uint64_t Upid() const { return start_ticks << kPidBits | pid; }
  friend bool operator==(const ProcessKey&, const ProcessKey&) = default;
};

// Numbers are part of the format: ARG_PROCESS_SOURCE.
enum class ProcessSource : uint8_t {
  kUnknown = 0,
  kPtrace = 1,     // stopped at each event: exact
  kConnector = 2,  // told by the kernel afterwards: what is read may be late
  kPerf = 3,       // trace points: exact times and keys, the rest may be late
};

// A descriptor that is a pipe.
struct PipeEnd {
  enum Access : uint8_t { kRead = 0, kWrite = 1, kReadWrite = 2 };

  uint32_t fd = 0;
  uint64_t inode = 0;  // of the pipe: both ends have the same
  Access access = kRead;
  friend bool operator==(const PipeEnd&, const PipeEnd&) = default;
};

// Texts are views: of a writer's into what it has read, of a reader's into the
// block. 0, empty or nullopt: not known, or not of this kind.
struct ProcessRecord {
  enum class Kind : uint8_t {
    kFork,     // `process` made `child`: a process or, with CLONE_THREAD, a
               // thread of its own
    kExec,     // it runs another program now
    kExit,     // it ended; or, where tid is not pid, one of its threads
    kComm,     // it gave itself another name
    kPipes,    // its descriptors that are pipes: behind each exec, and before
               // the end of what never ran another program
    kRunning,  // it was there already when recording began
  };

  Kind kind{};
  uint64_t time_ns = 0;  // monotonic
  uint64_t real_ns = 0;  // since the epoch; set by readers
  ProcessKey process;
  uint32_t tid = 0;   // the thread that did it
  uint32_t ppid = 0;  // its parent
  // As its own pid namespace numbers it, where that is not `process.pid`.
  uint32_t ns_pid = 0;
  std::optional<uint32_t> cpu;

  // kFork.
  ProcessKey child;
  uint32_t child_tid = 0;
  uint32_t child_ns_pid = 0;
  std::optional<uint64_t> clone_flags;  // CLONE_…; of fork 0

  // kExec and kRunning, in the process's own name space of mounts.
  std::string_view program;  // what was to run, as it was given; of a script
                             // the script
  std::string_view exe;      // what runs: of a script its interpreter
  std::string_view cwd;
  std::string_view argv;     // each argument and a NUL
  std::string_view environ;  // likewise; only where a tracer asks for it

  // kExit: one of the two.
  std::optional<uint32_t> exit_code;
  std::optional<uint32_t> signal;  // that ended it
  bool core_dumped = false;

  std::string_view comm;    // kComm, kExec, kRunning
  std::string_view cgroup;  // kExec, kRunning
  // kPipes. No more than kMaxPipes, or `incomplete` is set.
  static constexpr size_t kMaxPipes = 4096;
  std::vector<PipeEnd> pipes;

  ProcessSource source = ProcessSource::kUnknown;
  // Some of it was read when the process could have gone on already: it may be
  // of a later moment.
  bool late = false;
  // Something could not be read, or was too long.
  bool incomplete = false;
  uint32_t tracer_id = 0;  // set by readers

  bool is_thread() const { return tid != 0 && tid != process.pid; }
};

// "fork", "exec", "exit", "comm", "pipes", "running".
std::string_view ProcessKindName(ProcessRecord::Kind kind);
// "ptrace", "connector", "perf"; empty of others.
std::string_view ProcessSourceName(ProcessSource source);

// The container that a control group is of, the innermost one: of Docker,
// Podman, containerd and CRI-O its id, 64 hexadecimal digits; of systemd-nspawn
// and LXC its name. Empty: of none.
std::string ContainerOf(std::string_view cgroup);

// Calls `use` with each of the texts of a list whose texts each end with a NUL.
template <typename Use>
void ForEachListed(std::string_view list, Use use) {
  while (!list.empty()) {
    const size_t end = list.find('\0');
    use(list.substr(0, end));
    if (end == list.npos) return;
    list.remove_prefix(end + 1);
  }
}

}  // namespace tracefs
