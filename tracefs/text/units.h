// Numbers as people read them, wherever they are printed: in tables, on
// screens, on the page (web/format.js has the same) and in notes. Formats for
// programs have plain integers instead.
//
// Three digits, a blank and the unit. Digits are cut, not rounded: what is told
// was reached. Units are powers of 1000; who means powers of 1024 writes KiB,
// MiB. Commands have --raw for figures as they are.
#pragma once

#include <cstdint>
#include <string>

namespace tracefs {

// "512 B", "1.04 MB".
std::string SizeText(uint64_t bytes);
// A count or a rate in little room: "999", "0.25", "1.04M".
std::string ShortNumber(double number);
// "1,048,576".
std::string CountText(uint64_t count);
// "1 file", "12,345 files".
std::string CountText(uint64_t count, const char* one, const char* many);
// "12 %", "0.3 %", "100 %" only of all.
std::string ShareText(uint64_t part, uint64_t total);
// With so many digits after the point.
std::string Decimal(double value, int places);

}  // namespace tracefs
