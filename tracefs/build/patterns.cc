#include "tracefs/build/patterns.h"

#include <fnmatch.h>

#include <algorithm>

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

std::string MatchBits(const std::vector<std::string>& patterns,
                      const std::string& text) {
  std::string bits((patterns.size() + 7) / 8, '\0');
  for (size_t k = 0; k < patterns.size(); ++k) {
    if (!Matches(patterns[k], text)) continue;
    bits[k / 8] = static_cast<char>(bits[k / 8] | (0x80 >> (k % 8)));
  }
  return bits;
}

}  // namespace tracefs::build
