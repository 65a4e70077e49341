// Durations for people, as units.h says: three digits, a blank and a unit.
#pragma once

#include <cstdint>
#include <string>

namespace tracefs {

// "850 ns", "12.4 µs", "1.25 s": at most 24 bytes, of which µ is two. Returns
// the end.
char* PutDuration(char* out, uint64_t ns);
std::string DurationText(uint64_t ns);
// The same, in minutes and hours from two minutes on: "2.50 min".
std::string SpanText(uint64_t ns);
// "2076414412 ns (2.07 s)": exact, and as people say it.
std::string ExactDurationText(uint64_t ns);
// A difference: "+365 ms", "-1.20 ms", "0 ns".
std::string SignedDurationText(int64_t ns);

}  // namespace tracefs
