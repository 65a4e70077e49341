// Durations for people, as units.h says: three digits and a unit.
#pragma once

#include <cstdint>
#include <string>

namespace tracefs {

// "850ns", "12.4us", "1.25s": at most 24 bytes. Returns the end.
char* PutDuration(char* out, uint64_t ns);
std::string DurationText(uint64_t ns);
// The same, in minutes and hours from two minutes on: "2.50min".
std::string SpanText(uint64_t ns);
// "2076414412 ns (2.07s)": exact, and as people say it.
std::string ExactDurationText(uint64_t ns);
// A difference: "+365ms", "-1.20ms", "0ns".
std::string SignedDurationText(int64_t ns);

}  // namespace tracefs
