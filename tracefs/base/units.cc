#include "tracefs/base/units.h"

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <limits>
#include <system_error>

namespace tracefs {
namespace {

struct Unit {
  std::string_view name;
  uint64_t factor;
};

constexpr Unit kSizes[] = {
    {"K", uint64_t{1} << 10}, {"k", uint64_t{1} << 10},
    {"M", uint64_t{1} << 20}, {"m", uint64_t{1} << 20},
    {"G", uint64_t{1} << 30}, {"g", uint64_t{1} << 30},
    {"T", uint64_t{1} << 40}, {"t", uint64_t{1} << 40},
};

constexpr Unit kDurations[] = {
    {"ns", 1},
    {"us", 1'000},
    {"ms", 1'000'000},
    {"s", 1'000'000'000},
    {"m", 60 * uint64_t{1'000'000'000}},
    {"h", 3600 * uint64_t{1'000'000'000}},
};

std::optional<uint64_t> ParseDigits(std::string_view digits, int base) {
  uint64_t value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value, base);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

// `text` with one of `units` behind its digits.
template <size_t N>
std::optional<uint64_t> ParseWithUnit(std::string_view text,
                                      const Unit (&units)[N]) {
  const size_t digits = text.find_first_not_of("0123456789");
  if (digits == 0 || digits == std::string_view::npos) return std::nullopt;
  const std::optional<uint64_t> number = ParseUnsigned(text.substr(0, digits));
  if (!number) return std::nullopt;
  for (const Unit& unit : units) {
    if (text.substr(digits) != unit.name) continue;
    if (*number > std::numeric_limits<uint64_t>::max() / unit.factor) {
      return std::nullopt;
    }
    return *number * unit.factor;
  }
  return std::nullopt;
}

}  // namespace

std::optional<uint64_t> ParseUnsigned(std::string_view text) {
  if (text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
    return ParseDigits(text.substr(2), 16);
  }
  if (text.size() > 1 && text[0] == '0') return std::nullopt;
  return ParseDigits(text, 10);
}

std::optional<uint64_t> ParseSize(std::string_view text) {
  if (const auto plain = ParseUnsigned(text)) return plain;
  return ParseWithUnit(text, kSizes);
}

std::optional<uint64_t> ParseDuration(std::string_view text) {
  if (text == "0") return 0;
  return ParseWithUnit(text, kDurations);
}

std::string SecondsText(int64_t ns) {
  constexpr uint64_t kNsInSecond = 1'000'000'000;
  const uint64_t size =
      ns < 0 ? 0 - static_cast<uint64_t>(ns) : static_cast<uint64_t>(ns);
  const std::string padded = std::to_string(kNsInSecond + size % kNsInSecond);
  return (ns < 0 ? "-" : "") + std::to_string(size / kNsInSecond) + '.' +
         padded.substr(1);
}

std::string SizeText(uint64_t bytes) {
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024) {
    value /= 1024;
    ++unit;
  }
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.1f %s",
                value, kUnits[unit]);
  return text.data();
}

}  // namespace tracefs
