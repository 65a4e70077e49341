// What /proc and its memory tell of a task that cannot go on meanwhile: one
// that is stopped for its tracer.
//
// Nothing here opens a file of the task's own: links are read as texts, so that
// a file system that waits for the task is never asked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tracefs/event/process_record.h"

namespace tracefs {

// Where the kernel put a program's code and stack: each time somewhere else,
// and kept by forks, so that it tells whether another program was run.
struct TaskMemory {
  uint64_t code = 0;
  uint64_t stack = 0;
  // Not for us to know where it is 0.
  bool known() const { return stack != 0; }
  bool operator==(const TaskMemory&) const = default;
};

struct TaskFacts {
  ProcessKey process;
  uint32_t ppid = 0;
  uint32_t ns_pid = 0;  // 0: that of `process`, or not known
  std::optional<uint32_t> cpu;
  std::string comm;
  std::string exe;
  std::string cwd;
  std::string cgroup;
  // Lists, each text with its NUL.
  std::string argv;
  std::string environ;
  std::string program;
  TaskMemory memory;
  bool incomplete = false;

  // Fills in what a record has of it; views point here.
  void PutInto(ProcessRecord* record) const;
};

// What /proc/PID/stat has of a process.
struct TaskStat {
  uint32_t ppid = 0;
  uint64_t start_ticks = 0;
  uint32_t cpu = 0;
  std::string comm;
  TaskMemory memory;
  // Of its first memory: arguments, then the environment, then the name of the
  // program that execve(2) was given. 0: not for us to know.
  uint64_t arg_start = 0, arg_end = 0, env_start = 0, env_end = 0;
};
// Nothing if it is gone.
std::optional<TaskStat> ReadTaskStat(uint32_t pid);
// The text of /proc/PID/stat; nothing if it is not one.
std::optional<TaskStat> ParseTaskStat(std::string_view text);

// Whose thread a task is, and that process's parent.
struct TaskOwner {
  uint32_t pid = 0;
  uint32_t ppid = 0;
  uint32_t tracer = 0;  // who follows it; 0: nobody, or not any more
};
// Nothing if it is gone.
std::optional<TaskOwner> ReadTaskOwner(uint32_t tid);

// The processes that this thread of a process made, as far as they are still
// its children.
std::vector<uint32_t> ReadChildren(uint32_t pid, uint32_t tid);

// All that is known of a process that has just begun to run its program, and
// has not gone on since.
TaskFacts ReadTaskFacts(uint32_t pid, bool environment);

// Its descriptors that are pipes. False if there may be more.
bool ReadPipes(uint32_t pid, std::vector<PipeEnd>* pipes);

// The flags of the clone(2), clone3(2), fork(2) or vfork(2) that a task is in,
// without the signal; nothing if it is in none, or cannot be asked: `*running`
// then says whether that is because it runs, maybe in one of these.
std::optional<uint64_t> ReadCloneFlags(uint32_t tid, bool* running = nullptr);

}  // namespace tracefs
