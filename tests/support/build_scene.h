// BuildScene: processes and what they do with files, written down by hand, as a
// tracker takes them.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/build/file_step.h"
#include "tracefs/event/process_record.h"

namespace tracefs::test {

// `Taker` has Take(const ProcessRecord&) and Take(const build::FileStep&). Each
// call is a microsecond after the one before. A pid starts at ten times itself.
template <typename Taker>
class BuildScene {
 public:
  explicit BuildScene(Taker& taker) : taker_(taker) {}

  uint64_t now() const { return now_; }
  void Wait(uint64_t ns) { now_ += ns; }

  void Running(uint32_t pid, std::string_view command) {
    RunProgram(ProcessRecord::Kind::kRunning, pid, command);
  }
  void Fork(uint32_t parent, uint32_t child, uint64_t flags = 17) {
    ProcessRecord record = Record(ProcessRecord::Kind::kFork, parent);
    record.child = Key(child);
    record.child_tid = child;
    record.clone_flags = flags;
    taker_.Take(record);
  }
  // "/usr/bin/gcc -c a.c": runs the first word, has all as its arguments.
  void Exec(uint32_t pid, std::string_view command) {
    RunProgram(ProcessRecord::Kind::kExec, pid, command);
  }
  void Pipes(uint32_t pid, std::vector<PipeEnd> pipes) {
    ProcessRecord record = Record(ProcessRecord::Kind::kPipes, pid);
    record.pipes = std::move(pipes);
    taker_.Take(record);
  }
  void Rename(uint32_t pid, std::string_view name) {
    ProcessRecord record = Record(ProcessRecord::Kind::kComm, pid);
    record.comm = name;
    taker_.Take(record);
  }
  void Exit(uint32_t pid, uint32_t code = 0) {
    ProcessRecord record = Record(ProcessRecord::Kind::kExit, pid);
    record.exit_code = code;
    taker_.Take(record);
  }
  void Kill(uint32_t pid, uint32_t signal) {
    ProcessRecord record = Record(ProcessRecord::Kind::kExit, pid);
    record.signal = signal;
    taker_.Take(record);
  }
  // All of it at once.
  void Run(uint32_t parent, uint32_t pid, std::string_view command) {
    Fork(parent, pid);
    Exec(pid, command);
  }

  void Open(uint32_t pid, std::string_view path, uint32_t flags = O_RDONLY) {
    build::FileStep step = Step(pid, Op::open_, path);
    step.flags = flags;
    Take(step);
  }
  void Create(uint32_t pid, std::string_view path,
              uint32_t flags = O_WRONLY | O_CREAT | O_TRUNC) {
    build::FileStep step = Step(pid, Op::create_, path);
    step.flags = flags;
    step.inode = ++inode_;
    Take(step);
  }
  void Miss(uint32_t pid, std::string_view path) {
    build::FileStep step = Step(pid, Op::lookup_, path);
    step.mode = 0;
    step.error = ENOENT;
    Take(step);
  }
  void Do(uint32_t pid, Op op, std::string_view path,
          std::string_view path2 = {}) {
    build::FileStep step = Step(pid, op, path);
    step.path2 = path2;
    Take(step);
  }
  build::FileStep Step(uint32_t pid, Op op, std::string_view path) {
    build::FileStep step;
    step.time_ns = Tick();
    step.duration_ns = 100;
    step.process = Key(pid);
    step.op = op;
    step.path = path;
    step.mode = S_IFREG | 0644;
    return step;
  }
  void Take(const build::FileStep& step) { taker_.Take(step); }

  static ProcessKey Key(uint32_t pid) { return {pid, uint64_t{pid} * 10}; }

 private:
  uint64_t Tick() { return now_ += 1000; }

  ProcessRecord Record(ProcessRecord::Kind kind, uint32_t pid) {
    ProcessRecord record;
    record.kind = kind;
    record.time_ns = Tick();
    record.process = Key(pid);
    record.tid = pid;
    return record;
  }

  void RunProgram(ProcessRecord::Kind kind, uint32_t pid,
                  std::string_view command) {
    ProcessRecord record = Record(kind, pid);
    record.exe = record.program = command.substr(0, command.find(' '));
    record.cwd = "/src";
    std::string argv(command);
    for (char& c : argv) {
      if (c == ' ') c = '\0';
    }
    argv += '\0';
    record.argv = argv;
    taker_.Take(record);
  }

  Taker& taker_;
  uint64_t now_ = 1'000'000'000;
  uint64_t inode_ = 100;
};

}  // namespace tracefs::test
