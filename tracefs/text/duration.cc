#include "tracefs/text/duration.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>

#include "tracefs/text/decimal.h"
#include "tracefs/text/put_text.h"
#include "tracefs/text/three_digits.h"

namespace tracefs {
namespace {

struct Unit {
  uint64_t ns;
  std::string_view name;
};

constexpr Unit kUnits[] = {
    {1'000'000'000, " s"}, {1'000'000, " ms"}, {1'000, " µs"}};

}  // namespace

char* PutDuration(char* out, uint64_t ns) {
  const Unit* const unit =
      std::find_if(std::begin(kUnits), std::end(kUnits),
                   [ns](const Unit& u) { return ns >= u.ns; });
  if (unit == std::end(kUnits)) return PutText(PutDecimal(out, ns), " ns");
  return PutText(PutThreeDigits(out, ns, unit->ns), unit->name);
}

std::string DurationText(uint64_t ns) {
  std::array<char, 24> text;
  return {text.data(), PutDuration(text.data(), ns)};
}

std::string SpanText(uint64_t ns) {
  constexpr uint64_t kMinute = 60'000'000'000;
  if (ns < 2 * kMinute) return DurationText(ns);
  const bool hours = ns >= 120 * kMinute;
  std::array<char, 24> text;
  char* const end =
      PutThreeDigits(text.data(), ns, hours ? 60 * kMinute : kMinute);
  return std::string(text.data(), end) + (hours ? " h" : " min");
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
