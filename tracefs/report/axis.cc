#include "tracefs/report/axis.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "tracefs/report/units_text.h"

namespace tracefs::report {
namespace {

constexpr double kSecond = 1e9;

}  // namespace

double RoundStep(double length, int most) {
  const double least = length / most;
  if (!(least > 0)) return 1;
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double times : {1, 2, 5}) {
    // What is less than one by rounding alone is one.
    if (times * power >= least * (1 - 1e-9)) return times * power;
  }
  return 10 * power;
}

double RoundTimeStep(double length_ns, int most) {
  const double least = length_ns / most;
  if (least <= 20 * kSecond) return std::max(1.0, RoundStep(length_ns, most));
  for (const double seconds :
       {30, 60, 120, 300, 600, 1800, 3600, 7200, 10800, 21600, 43200, 86400}) {
    if (seconds * kSecond >= least) return seconds * kSecond;
  }
  constexpr double kDay = 86400 * kSecond;
  return kDay * std::max(1.0, RoundStep(length_ns / kDay, most));
}

std::vector<double> Multiples(double begin, double end, double step) {
  std::vector<double> all;
  for (double at = std::ceil(begin / step - 1e-9);
       at * step <= end * (1 + 1e-9) && all.size() < 100; ++at) {
    all.push_back(at * step);
  }
  return all;
}

std::string TickTimeText(double ns, double step_ns) {
  if (ns == 0) return "0";
  struct Unit {
    double below;
    double ns;
    const char* name;
  };
  static constexpr Unit kUnits[] = {{1e3, 1, " ns"},
                                    {1e6, 1e3, " µs"},
                                    {1e9, 1e6, " ms"},
                                    {120 * kSecond, kSecond, " s"},
                                    {7200 * kSecond, 60 * kSecond, " min"},
                                    {HUGE_VAL, 3600 * kSecond, " h"}};
  const Unit* unit = kUnits;
  while (ns >= unit->below) ++unit;
  int digits = 0;
  for (double step = step_ns / unit->ns;
       digits < 6 && std::abs(step - std::round(step)) > 1e-6 * step;
       step *= 10) {
    ++digits;
  }
  return Decimal(ns / unit->ns, digits) + unit->name;
}

std::string RoundNumberText(double value) {
  std::array<char, 64> text{};
  if (value >= 1e6) {
    const double unit = value >= 1e9 ? 1e9 : 1e6;
    std::snprintf(text.data(), text.size(), "%.4g%c", value / unit,
                  unit == 1e9 ? 'G' : 'M');
    return text.data();
  }
  if (value >= 1000) return CountText(static_cast<uint64_t>(value + 0.5));
  std::snprintf(text.data(), text.size(), "%.3g", value);
  return text.data();
}

std::vector<uint64_t> LogTimeTicks(uint64_t low_ns, uint64_t high_ns) {
  const auto ticks = [&](std::initializer_list<uint64_t> times) {
    std::vector<uint64_t> all;
    for (uint64_t power = 1; power <= 10'000'000'000'000'000; power *= 10) {
      for (const uint64_t factor : times) {
        const uint64_t ns = factor * power;
        if (ns >= low_ns && ns <= high_ns) all.push_back(ns);
      }
    }
    return all;
  };
  std::vector<uint64_t> all = ticks({1});
  if (all.size() < 3) all = ticks({1, 2, 5});
  return all;
}

}  // namespace tracefs::report
