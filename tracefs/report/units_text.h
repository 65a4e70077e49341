// Numbers as people read them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tracefs::report {

// With so many digits after the point.
std::string Decimal(double value, int places);
// "12,345".
std::string CountText(uint64_t count);
// "1 file", "12,345 files".
std::string CountText(uint64_t count, const char* one, const char* many);
// "512 B", "1.25 MB": powers of 1000.
std::string BytesText(uint64_t bytes);
// "12 %", "0.3 %", "100 %" only of all.
std::string ShareText(uint64_t part, uint64_t total);
// "3.70 us": three digits and a unit.
std::string TimeText(uint64_t ns);

// What stands over a column of a document's values ("time" of "time_ns"), and
// how one of them is written.
std::string_view ValueHead(std::string_view key);
std::string ValueText(std::string_view key, uint64_t value);

}  // namespace tracefs::report
