// Durations for people: three significant digits and a unit.
#ifndef TRACEFS_EXPORT_DURATION_H_
#define TRACEFS_EXPORT_DURATION_H_

#include <cstdint>
#include <string>

namespace tracefs {

// "850ns", "12.4us", "1.25s": at most 24 bytes. Returns the end.
char* PutDuration(char* out, uint64_t ns);
std::string DurationText(uint64_t ns);

}  // namespace tracefs

#endif  // TRACEFS_EXPORT_DURATION_H_
