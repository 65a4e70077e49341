// Patterns of files and of command lines, as fnmatch(3) has them without flags:
// `*` matches '/', too.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tracefs/build/build_graph.h"

namespace tracefs::build {

bool MatchesAny(const std::vector<std::string>& patterns,
                const std::string& text);

// Which patterns match the command line of each execution, worked out once.
// Bit k of an execution is 0x80 >> (k % 8) of byte k / 8, as CAS has it.
class CommandBits {
 public:
  CommandBits() = default;
  CommandBits(const BuildGraph& graph, std::vector<std::string> patterns);

  const std::vector<std::string>& patterns() const { return patterns_; }
  bool Test(ExecutionId execution, size_t pattern) const {
    const uint8_t byte = bits_[execution * bytes_ + pattern / 8];
    return (byte & (0x80 >> (pattern % 8))) != 0;
  }
  std::string_view Bytes(ExecutionId execution) const {
    return {reinterpret_cast<const char*>(&bits_[execution * bytes_]), bytes_};
  }

 private:
  std::vector<std::string> patterns_;
  size_t bytes_ = 0;  // of each execution
  std::vector<uint8_t> bits_;
};

}  // namespace tracefs::build
