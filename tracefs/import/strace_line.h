// A line as strace(1) prints it, taken apart.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tracefs::import {

struct StraceLine {
  enum class Kind : uint8_t {
    kCall,        // name, arguments, result
    kUnfinished,  // name, and the arguments so far
    kResumed,     // name, and the rest
    kExit,        // +++ exited with 0 +++, +++ killed by SIGKILL +++
    kSuperseded,  // +++ superseded by execve in pid 17 +++
    kSignal,      // --- SIGCHLD {…} ---
  };
  Kind kind = Kind::kCall;
  uint32_t tid = 0;        // 0: strace was run without -f
  bool has_time = false;   // -ttt
  uint64_t real_ns = 0;    // since the epoch
  std::string_view name;   // "openat"
  std::string_view rest;   // behind "name(", or behind "resumed>"
  uint32_t other_tid = 0;  // of kSuperseded
};

// The time that a line begins with: since the epoch with -ttt, since the line
// before with -r alone.
std::optional<uint64_t> TimeOfStraceLine(std::string_view line);

// Nothing if it is none. Views are into `line`.
std::optional<StraceLine> ParseStraceLine(std::string_view line);

// What follows "name(".
struct StraceCall {
  static constexpr size_t kMostArguments = 16;  // what is more is left out

  std::vector<std::string_view> arguments;
  std::string_view result;  // "3</a>", "-1", "0x7f…", "?"
  std::string_view error;   // "ENOENT", or empty
  std::optional<uint64_t> duration_ns;

  std::string_view at(size_t i) const {
    return i < arguments.size() ? arguments[i] : std::string_view();
  }
};

// False if it does not end as a call does.
bool ParseStraceCall(std::string_view rest, StraceCall* call);
// As many arguments as are there of a call that has not ended.
void ParseStraceArguments(std::string_view rest, StraceCall* call);

// --- Arguments.

// "…", with its escapes undone, and ... after it if it is cut. False if it is
// no string.
bool DecodeString(std::string_view token, std::string* text, bool* cut);

// 3</path>, AT_FDCWD</path>, -1; without -y there is no path.
struct DescriptorArgument {
  static constexpr int64_t kWorkingDirectory = -100;
  int64_t number = -1;
  bool has_path = false;
  bool deleted = false;  // the file has no name any more
  std::string path;
};
bool DecodeDescriptor(std::string_view token, DescriptorArgument* argument);

// Decimal, octal with a leading 0, or hex; also the number before a comment or
// an annotation.
std::optional<int64_t> DecodeNumber(std::string_view token);

// In a structure: what follows "name=", to the next comma or the end of the
// structure. Empty if it is not there.
std::string_view Member(std::string_view token, std::string_view name);
// The elements between brackets.
std::vector<std::string_view> Elements(std::string_view token);

// O_…, AT_…, RENAME_…, FALLOC_FL_…, XATTR_…, S_I…, numbers, with | between;
// what is not known is 0.
uint64_t DecodeFlags(std::string_view token);
// CLONE_…, of clone and clone3, also where they have not ended.
uint64_t CloneFlagsOf(const StraceCall& call);
// 0 if there is no such error.
int ErrnoOf(std::string_view name);

}  // namespace tracefs::import
