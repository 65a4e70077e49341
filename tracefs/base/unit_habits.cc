#include "tracefs/base/unit_habits.h"

#include <array>

#include "tracefs/base/spelling.h"
#include "tracefs/base/units.h"

namespace tracefs {
namespace {

struct Habit {
  std::string_view theirs;
  std::string_view ours;
};

// The longer before what they begin with.
constexpr std::array kUnits = {
    Habit{"KiB", "K"},     Habit{"MiB", "M"},     Habit{"GiB", "G"},
    Habit{"TiB", "T"},     Habit{"KB", "K"},      Habit{"MB", "M"},
    Habit{"GB", "G"},      Habit{"TB", "T"},      Habit{"bytes", ""},
    Habit{"B", ""},        Habit{"seconds", "s"}, Habit{"second", "s"},
    Habit{"secs", "s"},    Habit{"sec", "s"},     Habit{"msecs", "ms"},
    Habit{"msec", "ms"},   Habit{"usecs", "us"},  Habit{"usec", "us"},
    Habit{"minutes", "m"}, Habit{"min", "m"},     Habit{"hours", "h"},
    Habit{"hour", "h"},
};

}  // namespace

std::string DidYouMeanNumber(std::string_view word) {
  size_t digits = 0;
  while (digits < word.size() && word[digits] >= '0' && word[digits] <= '9') {
    ++digits;
  }
  if (digits == 0) return {};
  for (const Habit& unit : kUnits) {
    if (!SameButForCase(word.substr(digits), unit.theirs)) continue;
    const std::string ours =
        std::string(word.substr(0, digits)) + std::string(unit.ours);
    if (!ParseSize(ours) && !ParseDuration(ours)) return {};
    return "; did you mean '" + ours + "'?";
  }
  return {};
}

}  // namespace tracefs
