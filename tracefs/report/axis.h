// Where the marks of an axis stand, at round numbers, and what they say. The
// page's own script (web/axis.js) puts the same ones.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tracefs::report {

// 1, 2 or 5 times a power of ten: at most `most` steps of it cover `length`.
double RoundStep(double length, int most);
// The same for ns, which above half a minute go by minutes, hours and days.
double RoundTimeStep(double length_ns, int most);
// Multiples of `step` from `begin` to `end`.
std::vector<double> Multiples(double begin, double end, double step);

// "1.5 ms" of a mark that is `step_ns` from the next: as many digits as tell
// them apart.
std::string TickTimeText(double ns, double step_ns);
// "1,234", "0.25", "1.5 M": without zeros that say nothing.
std::string RoundNumberText(double value);
// Durations for marks on an axis from `low_ns` to `high_ns` whose scale is
// logarithmic.
std::vector<uint64_t> LogTimeTicks(uint64_t low_ns, uint64_t high_ns);

}  // namespace tracefs::report
