// Glob: shell patterns on names and paths, matched in time proportional to the
// text whatever the pattern.
//
//   *      any bytes; in a path, any bytes but '/'
//   **     any bytes, '/' too; in a path, "/**/" matches a single "/" as well
//   ?      any one byte; in a path, any one but '/'
//   [a-z]  one of these bytes; [!a-z] or [^a-z] one that is not; ']' first is
//          itself; in a path, never '/'
//   \x     x itself
//
// The rest stands for itself. A leading dot is nothing special. Compiled to a
// non-deterministic automaton that is run with all states at once, one bit a
// state ("shift-and", Baeza-Yates and Gonnet 1992), so that there is nothing
// to go back to: a pattern of n bytes costs n/64 + 1 operations a byte of text.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/base/status.h"

namespace tracefs {

enum class GlobKind : uint8_t { kName, kPath };

class Glob {
 public:
  static constexpr size_t kMaxBytes = 1024;

  // kInvalid, without a position, for a pattern that is too long, ends in a
  // backslash or has a '[' without ']'.
  static Result<Glob> Compile(std::string_view pattern, GlobKind kind);

  // Whether all of `text` matches. No allocation; threads: any.
  bool Matches(std::string_view text) const;

  const std::string& pattern() const { return pattern_; }

 private:
  // The states of up to 64 pattern positions. State i: the first i positions
  // have matched.
  struct Word {
    std::array<uint64_t, 256> advance{};  // may leave state i by this byte
    uint64_t loop = 0;                    // stays by any byte
    uint64_t loop_in_component = 0;       // stays by any byte but '/'
    uint64_t skip = 0;  // entered by '/', goes on at once: "/**/"
  };

  Glob() = default;
  bool MatchesAutomaton(std::string_view text) const;

  std::string pattern_;
  // What every match begins and ends with: rejects most texts at once.
  std::string prefix_;
  std::string suffix_;
  bool only_prefix_and_suffix_ = false;  // prefix*suffix, and * crosses all
  size_t positions_ = 0;
  std::vector<Word> words_;
};

}  // namespace tracefs
