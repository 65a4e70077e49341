#include "tracefs/base/units.h"

#include <charconv>
#include <cstddef>
#include <limits>
#include <system_error>

#include "tracefs/base/text.h"

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

// Takes the digits that `text` begins with.
std::string_view TakeDigits(std::string_view* text) {
  const std::string_view digits =
      text->substr(0, text->find_first_not_of(kDecimalDigits));
  text->remove_prefix(digits.size());
  return digits;
}

// So many `decimals` (digits behind a point) of `factor`, which must be whole.
std::optional<uint64_t> WholePartOf(uint64_t factor,
                                    std::string_view decimals) {
  uint64_t part = 0;
  for (size_t i = decimals.size(); i-- > 0;) {
    part += static_cast<uint64_t>(decimals[i] - '0') * factor;
    if (part % 10 != 0) return std::nullopt;
    part /= 10;
  }
  return part;
}

// A number followed by one of `units`, which may have a `fraction`.
template <size_t N>
std::optional<uint64_t> ParseWithUnit(std::string_view text,
                                      const Unit (&units)[N], bool fraction) {
  const std::optional<uint64_t> number = ParseUnsigned(TakeDigits(&text));
  if (!number) return std::nullopt;
  std::string_view decimals;
  if (fraction && text.starts_with('.')) {
    text.remove_prefix(1);
    decimals = TakeDigits(&text);
    if (decimals.empty()) return std::nullopt;
  }
  for (const Unit& unit : units) {
    if (text != unit.name) continue;
    const std::optional<uint64_t> part = WholePartOf(unit.factor, decimals);
    if (!part || *number > (std::numeric_limits<uint64_t>::max() - *part) /
                               unit.factor) {
      return std::nullopt;
    }
    return *number * unit.factor + *part;
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
  return ParseWithUnit(text, kSizes, /*fraction=*/false);
}

std::optional<uint64_t> ParseDuration(std::string_view text) {
  if (text == "0") return 0;
  return ParseWithUnit(text, kDurations, /*fraction=*/true);
}

std::string SecondsText(int64_t ns) {
  constexpr uint64_t kNsInSecond = 1'000'000'000;
  const uint64_t size =
      ns < 0 ? 0 - static_cast<uint64_t>(ns) : static_cast<uint64_t>(ns);
  const std::string padded = std::to_string(kNsInSecond + size % kNsInSecond);
  return (ns < 0 ? "-" : "") + std::to_string(size / kNsInSecond) + '.' +
         padded.substr(1);
}

}  // namespace tracefs
