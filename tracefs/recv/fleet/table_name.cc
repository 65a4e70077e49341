#include "tracefs/recv/fleet/table_name.h"

#include <array>
#include <cstdio>

#include "tracefs/base/units.h"
#include "tracefs/format/frame.h"

namespace tracefs {
namespace {

constexpr size_t kSerialDigits = 2 * format::kSerialBytes;

// "000000000017", which sorts as it counts.
std::optional<uint64_t> NumberOf(std::string_view digits) {
  const size_t first = digits.find_first_not_of('0');
  return ParseUnsigned(first == digits.npos ? "0" : digits.substr(first));
}

}  // namespace

std::string TableName::Text() const {
  std::array<char, 64> numbers{};
  std::snprintf(numbers.data(), numbers.size(), "-%012llu-%012llu.",
                static_cast<unsigned long long>(first),
                static_cast<unsigned long long>(last));
  return serial + numbers.data() + format;
}

std::optional<TableName> TableName::Parse(std::string_view text) {
  if (text.size() < kSerialDigits + 1 || text[0] == '.' ||
      text[kSerialDigits] != '-') {
    return std::nullopt;
  }
  const std::string_view rest = text.substr(kSerialDigits + 1);
  const size_t dash = rest.find('-');
  const size_t dot = rest.find('.');
  if (dash == rest.npos || dot == rest.npos || dot < dash) return std::nullopt;
  const auto first = NumberOf(rest.substr(0, dash));
  const auto last = NumberOf(rest.substr(dash + 1, dot - dash - 1));
  if (!first || !last || *last < *first) return std::nullopt;
  return TableName{std::string(text.substr(0, kSerialDigits)), *first, *last,
                   std::string(rest.substr(dot + 1))};
}

}  // namespace tracefs
