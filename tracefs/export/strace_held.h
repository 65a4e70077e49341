// Lines in order of time, some of which wait for what their process does next:
// only that tells whether a system call asked for what they say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tracefs/text/output_buffer.h"

namespace tracefs {

// Used by one thread. Memory: kMostBytes of lines; beyond them, the oldest one
// is written if it is a stat, and left out if it is a close.
class HeldLines {
 public:
  static constexpr size_t kMostBytes = size_t{8} << 20;

  explicit HeldLines(OutputBuffer& out) : out_(out) {}

  void Add(std::string_view line);
  // A stat of `path`, or only the kernel's look at it on the way to a file: the
  // next request of the thread tells.
  void HoldStat(std::string_view line, uint64_t tid, std::string_view path);
  // A close, or only what the end of a process, or a program that it runs,
  // closes. Its next call tells; a process that makes none may have ended.
  void HoldClose(std::string_view line, uint64_t pid);

  // A thread asks for something; `opens`: opens `path`, which the kernel looks
  // at before. Either path may be empty.
  void ThreadAsks(uint64_t tid, bool opens, std::string_view path,
                  std::string_view path2);
  // A call of the process that was none of these.
  void ProcessCalls(uint64_t pid);
  // It ran another program, ended, or is a new one with that number.
  void ProcessChanges(uint64_t pid);
  // Writes what is left but for closes, of which nothing more was told.
  void Finish();

  uint64_t left_out() const { return left_out_; }

 private:
  enum class State : uint8_t { kReady, kWaits, kLeftOut };
  struct Line {
    std::string text;
    std::string path;  // of a stat
    State state = State::kReady;
    bool is_close = false;
  };

  static size_t SizeOf(const Line& line) {
    return line.text.size() + line.path.size() + sizeof(Line);
  }
  uint64_t Push(Line line);
  void Settle(uint64_t number, State state);
  void SettleCloses(uint64_t pid, State state);
  void WriteFront();
  void WriteReady();
  void Forget();

  OutputBuffer& out_;
  std::deque<Line> lines_;
  uint64_t first_ = 0;  // the number of the line at the front
  size_t bytes_ = 0;
  std::unordered_map<uint64_t, uint64_t> stats_;  // by tid: a line's number
  std::unordered_map<uint64_t, std::vector<uint64_t>> closes_;  // by pid
  uint64_t left_out_ = 0;
};

}  // namespace tracefs
