#include "tracefs/text/units.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <iterator>

#include "tracefs/text/put_text.h"
#include "tracefs/text/three_digits.h"

namespace tracefs {

std::string SizeText(uint64_t bytes) {
  constexpr const char* kByteUnits[] = {" B",  " kB", " MB", " GB",
                                        " TB", " PB", " EB"};
  uint64_t factor = 1;
  size_t unit = 0;
  while (bytes / factor >= 1000) {
    factor *= 1000;
    ++unit;
  }
  std::array<char, 16> text;
  return std::string(text.data(), PutThreeDigits(text.data(), bytes, factor)) +
         kByteUnits[unit];
}

std::string ShortNumber(double number) {
  constexpr const char* kNumberUnits[] = {"", "k", "M", "G", "T"};
  // Whole below 1000; rates may have parts.
  size_t unit = 0;
  while (number >= 1000 && unit + 1 < std::size(kNumberUnits)) {
    number /= 1000;
    ++unit;
  }
  const int places = number >= 100 || number == std::floor(number) ? 0
                     : number >= 10                                ? 1
                                                                   : 2;
  const double scale = std::pow(10, places);
  return Decimal(std::floor(number * scale + 1e-9) / scale, places) +
         kNumberUnits[unit];
}

std::string CountText(uint64_t count) {
  std::string digits = std::to_string(count);
  for (size_t i = digits.size(); i > 3;) digits.insert(i -= 3, 1, ',');
  return digits;
}

std::string CountText(uint64_t count, const char* one, const char* many) {
  return CountText(count) + " " + (count == 1 ? one : many);
}

std::string ShareText(uint64_t part, uint64_t total) {
  if (total == 0) return "0 %";
  if (part == total) return "100 %";
  const double share =
      100 * static_cast<double>(part) / static_cast<double>(total);
  if (share > 99.9) return "99.9 %";
  return Decimal(share, share < 10 || share > 99 ? 1 : 0) + " %";
}

std::string Decimal(double value, int places) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", places, value);
  return text.data();
}

}  // namespace tracefs
