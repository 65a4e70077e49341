#include "tracefs/build/patterns.h"

#include <fnmatch.h>

#include <algorithm>
#include <utility>

namespace tracefs::build {
namespace {

bool Matches(const std::string& pattern, const std::string& text) {
  return ::fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

}  // namespace

bool MatchesAny(const std::vector<std::string>& patterns,
                const std::string& text) {
  return std::any_of(
      patterns.begin(), patterns.end(),
      [&](const std::string& pattern) { return Matches(pattern, text); });
}

CommandBits::CommandBits(const BuildGraph& graph,
                         std::vector<std::string> patterns)
    : patterns_(std::move(patterns)), bytes_((patterns_.size() + 7) / 8) {
  if (bytes_ == 0) return;
  const size_t count = graph.executions().size();
  bits_.assign(count * bytes_, 0);
  const Image* image = nullptr;  // forks share it with their parent
  std::string line;
  for (ExecutionId id = 0; id < count; ++id) {
    const GraphExecution& execution = graph.executions()[id];
    if (execution.image.get() != image) line = execution.CommandLine();
    image = execution.image.get();
    for (size_t k = 0; k < patterns_.size(); ++k) {
      if (!Matches(patterns_[k], line)) continue;
      bits_[id * bytes_ + k / 8] |= static_cast<uint8_t>(0x80 >> (k % 8));
    }
  }
}

}  // namespace tracefs::build
