#include "tracefs/query/difference.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <tuple>

#include "tracefs/text/duration.h"
#include "tracefs/text/units.h"

namespace tracefs::query {
namespace {

constexpr size_t kNamedAtMost = 3;
constexpr double kEnough = 0.9;  // of all that changed

uint64_t Whole(double number) {
  return static_cast<uint64_t>(std::llround(number));
}

std::string Signed(double ns) { return SignedDurationText(std::llround(ns)); }

// "+7400.0%"; "" where there was nothing.
std::string PercentMore(double a, double b) {
  if (a <= 0) return {};
  std::array<char, 64> text;
  const int size =
      std::snprintf(text.data(), text.size(), "%+.1f %%", 100 * (b / a - 1));
  return ", " + std::string(text.data(), static_cast<size_t>(size));
}

// The first ones, until they are nearly all of it; what is left in one.
std::string PartsText(const std::vector<Difference>& ranked) {
  double all = 0;
  for (const Difference& d : ranked) all += std::abs(d.time_ns());
  std::string text;
  double named = 0;
  size_t next = 0;
  for (; next < std::min(ranked.size(), kNamedAtMost); ++next) {
    const Difference& d = ranked[next];
    if (d.time_ns() == 0 || named >= kEnough * all) break;
    named += std::abs(d.time_ns());
    text += (text.empty() ? "" : ", ") + d.name + " " + Signed(d.time_ns());
    text += d.in_a ? d.in_b ? "" : " (gone)" : " (new)";
  }
  double rest = 0;
  size_t others = 0;
  for (; next < ranked.size() && ranked[next].time_ns() != 0; ++next) {
    rest += ranked[next].time_ns();
    ++others;
  }
  if (others == 0) return text;
  return text + ", " + std::to_string(others) +
         (others == 1 ? " other " : " others ") + Signed(rest);
}

std::string TimeSentence(const std::vector<Difference>& ranked) {
  double a = 0;
  double b = 0;
  size_t unknown = 0;
  for (const Difference& d : ranked) {
    if (!d.time_known) {
      ++unknown;
      continue;
    }
    a += d.time_a_ns;
    b += d.time_b_ns;
  }
  if (unknown == ranked.size() || (a == 0 && b == 0)) {
    return "No time is known of any operation.";
  }
  const std::string in_a = DurationText(Whole(a));
  const std::string in_b = DurationText(Whole(b));
  std::string text;
  if (a == b) {
    text = "The operations took as long in B as in A (" + in_a + ")";
  } else {
    text = "The operations took " + DurationText(Whole(std::abs(b - a))) +
           (b > a ? " longer" : " less") + " in B (" + in_b + ") than in A (" +
           in_a + PercentMore(a, b) + ")";
  }
  const std::string parts = PartsText(ranked);
  text += parts.empty() ? "." : ": " + parts + ".";
  if (unknown == 0) return text;
  return text + " That is without " + CountText(unknown, "row", "rows") +
         " of which a side does not tell the time.";
}

std::string CountSentence(const std::vector<Difference>& ranked) {
  double a = 0;
  double b = 0;
  for (const Difference& d : ranked) {
    a += d.count_a;
    b += d.count_b;
  }
  const uint64_t in_a = Whole(a);
  const uint64_t in_b = Whole(b);
  if (in_a == in_b) return "Both have " + std::to_string(in_a) + " operations.";
  const uint64_t distance = in_a < in_b ? in_b - in_a : in_a - in_b;
  return "B has " + std::to_string(distance) +
         (distance == 1 ? " operation " : " operations ") +
         (in_a < in_b ? "more: " : "fewer: ") + std::to_string(in_b) +
         ", not " + std::to_string(in_a) + ".";
}

}  // namespace

void RankDifferences(std::vector<Difference>* all) {
  std::ranges::sort(*all, [](const Difference& x, const Difference& y) {
    return std::tuple(-std::abs(x.time_ns()), -std::abs(x.count()), x.name,
                      x.place) < std::tuple(-std::abs(y.time_ns()),
                                            -std::abs(y.count()), y.name,
                                            y.place);
  });
}

std::string DifferenceSentence(const std::vector<Difference>& ranked) {
  return TimeSentence(ranked) + " " + CountSentence(ranked);
}

}  // namespace tracefs::query
