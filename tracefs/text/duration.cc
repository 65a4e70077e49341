#include "tracefs/text/duration.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <string_view>

#include "tracefs/text/decimal.h"
#include "tracefs/text/put_text.h"

namespace tracefs {
namespace {

struct Unit {
  uint64_t ns;
  std::string_view name;
};

constexpr Unit kUnits[] = {
    {1'000'000'000, "s"}, {1'000'000, "ms"}, {1'000, "us"}};

}  // namespace

char* PutDuration(char* out, uint64_t ns) {
  const Unit* const unit =
      std::find_if(std::begin(kUnits), std::end(kUnits),
                   [ns](const Unit& u) { return ns >= u.ns; });
  if (unit == std::end(kUnits)) return PutText(PutDecimal(out, ns), "ns");
  const uint64_t whole = ns / unit->ns;
  out = PutDecimal(out, whole);
  const uint64_t thousandths = ns % unit->ns / (unit->ns / 1000);
  if (whole < 100) {
    *out++ = '.';
    *out++ = static_cast<char>('0' + thousandths / 100);
  }
  if (whole < 10) *out++ = static_cast<char>('0' + thousandths / 10 % 10);
  return PutText(out, unit->name);
}

std::string DurationText(uint64_t ns) {
  std::array<char, 24> text;
  return {text.data(), PutDuration(text.data(), ns)};
}

std::string ExactDurationText(uint64_t ns) {
  return std::to_string(ns) + " ns (" + DurationText(ns) + ")";
}

std::string SignedDurationText(int64_t ns) {
  if (ns == 0) return DurationText(0);
  // The smallest number has no positive counterpart.
  const auto bits = static_cast<uint64_t>(ns);
  return ns < 0 ? "-" + DurationText(0 - bits) : "+" + DurationText(bits);
}

}  // namespace tracefs
