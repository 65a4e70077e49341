#include "tracefs/report/units_text.h"

#include <array>
#include <cstdio>
#include <iterator>

namespace tracefs::report {
namespace {

// Three digits.
std::string Digits(double value) {
  return Decimal(value, value < 10 ? 2 : value < 100 ? 1 : 0);
}

}  // namespace

std::string Decimal(double value, int places) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", places, value);
  return text.data();
}

std::string CountText(uint64_t count) {
  const std::string text = std::to_string(count);
  std::string grouped;
  for (size_t i = 0; i < text.size(); ++i) {
    if (i != 0 && (text.size() - i) % 3 == 0) grouped += ',';
    grouped += text[i];
  }
  return grouped;
}

std::string CountText(uint64_t count, const char* one, const char* many) {
  return CountText(count) + " " + (count == 1 ? one : many);
}

std::string BytesText(uint64_t bytes) {
  if (bytes < 1000) return std::to_string(bytes) + " B";
  constexpr const char* kUnits[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
  double value = static_cast<double>(bytes) / 1000;
  size_t unit = 0;
  while (value >= 999.5 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  return Digits(value) + " " + kUnits[unit];
}

std::string ShareText(uint64_t part, uint64_t total) {
  if (total == 0) return "0 %";
  if (part == total) return "100 %";
  const double share =
      100 * static_cast<double>(part) / static_cast<double>(total);
  if (share > 99.9) return "99.9 %";
  return Decimal(share, share < 10 || share > 99 ? 1 : 0) + " %";
}

std::string TimeText(uint64_t ns) {
  if (ns < 1000) return std::to_string(ns) + " ns";
  const auto value = static_cast<double>(ns);
  if (value < 999.5e3) return Digits(value / 1e3) + " us";
  if (value < 999.5e6) return Digits(value / 1e6) + " ms";
  if (value < 120e9) return Digits(value / 1e9) + " s";
  if (value < 7200e9) return Digits(value / 60e9) + " min";
  return Digits(value / 3600e9) + " h";
}

std::string_view ValueHead(std::string_view key) {
  if (key == "count") return "ops";
  return key.substr(0, key.find("_ns"));
}

std::string ValueText(std::string_view key, uint64_t value) {
  if (key.ends_with("_ns")) return TimeText(value);
  return key == "bytes" ? BytesText(value) : CountText(value);
}

}  // namespace tracefs::report
