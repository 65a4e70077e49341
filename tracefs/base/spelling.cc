#include "tracefs/base/spelling.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace tracefs {
namespace {

// Longer words are not misspellings of anything we know.
constexpr size_t kMaxWord = 48;
// Shorter ones are the beginning of too much.
constexpr size_t kLeastBeginning = 3;

char Lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// Optimal string alignment distance, three rows at a time.
size_t Distance(std::string_view a, std::string_view b) {
  using Row = std::array<size_t, kMaxWord + 1>;
  Row before{}, previous{}, current{};
  for (size_t j = 0; j <= b.size(); ++j) previous[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool same = Lower(a[i - 1]) == Lower(b[j - 1]);
      size_t best = std::min(previous[j], current[j - 1]) + 1;
      best = std::min(best, previous[j - 1] + (same ? 0 : 1));
      if (i > 1 && j > 1 && Lower(a[i - 1]) == Lower(b[j - 2]) &&
          Lower(a[i - 2]) == Lower(b[j - 1])) {
        best = std::min(best, before[j - 2] + 1);
      }
      current[j] = best;
    }
    before = previous;
    previous = current;
  }
  return previous[b.size()];
}

}  // namespace

bool SameButForCase(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return Lower(x) == Lower(y); });
}

std::string_view NearestWord(std::string_view word,
                             std::span<const std::string_view> known) {
  if (word.empty() || word.size() > kMaxWord) return {};
  std::string_view nearest;
  size_t nearest_distance = kMaxWord + 1;
  for (const std::string_view candidate : known) {
    if (candidate.empty() || candidate.size() > kMaxWord) continue;
    const size_t allowed =
        std::max<size_t>(1, std::max(word.size(), candidate.size()) / 3);
    const size_t distance = Distance(word, candidate);
    if (distance <= allowed && distance < nearest_distance) {
      nearest = candidate;
      nearest_distance = distance;
    }
  }
  if (!nearest.empty() || word.size() < kLeastBeginning) return nearest;
  // "slow" for "slowest", "josn" for "jsonl".
  const auto begins_with = [&](size_t most) {
    return std::ranges::find_if(known, [&](std::string_view one) {
      return one.size() > word.size() && one.size() <= kMaxWord &&
             Distance(word, one.substr(0, word.size())) <= most;
    });
  };
  auto begun = begins_with(0);
  if (begun == known.end() && word.size() > kLeastBeginning) {
    begun = begins_with(1);
  }
  return begun == known.end() ? nearest : *begun;
}

std::string DidYouMean(std::string_view word,
                       std::span<const std::string_view> known) {
  const std::string_view nearest = NearestWord(word, known);
  if (nearest.empty()) return {};
  return "; did you mean '" + std::string(nearest) + "'?";
}

}  // namespace tracefs
