#include "tracefs/base/time_window.h"

#include <time.h>

#include <algorithm>

#include "tracefs/base/clock.h"
#include "tracefs/base/date_text.h"
#include "tracefs/base/units.h"

namespace tracefs {
namespace {

constexpr uint64_t kShares = 1'000'000;  // in the whole

// Reads from the front of a text.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool done() const { return text_.empty(); }
  bool Take(char c) {
    if (!text_.starts_with(c)) return false;
    text_.remove_prefix(1);
    return true;
  }
  // Exactly so many digits, at most `max`.
  bool Digits(size_t digits, int max, int* value) {
    if (text_.size() < digits) return false;
    *value = 0;
    for (size_t i = 0; i < digits; ++i) {
      if (text_[i] < '0' || text_[i] > '9') return false;
      *value = *value * 10 + (text_[i] - '0');
    }
    text_.remove_prefix(digits);
    return *value <= max;
  }
  // The digits after the point, as billionths. False if there is none.
  bool Fraction(uint64_t* ns) {
    uint64_t unit = kNsPerSecond;
    size_t digits = 0;
    for (;
         digits < text_.size() && text_[digits] >= '0' && text_[digits] <= '9';
         ++digits) {
      unit /= 10;
      *ns += unit * static_cast<uint64_t>(text_[digits] - '0');
    }
    text_.remove_prefix(digits);
    return digits != 0;
  }
  // "14:03[:05[.25]]".
  bool Clock(tm* tm, uint64_t* ns) {
    if (!Digits(2, 23, &tm->tm_hour) || !Take(':') ||
        !Digits(2, 59, &tm->tm_min)) {
      return false;
    }
    if (!Take(':')) return true;
    if (!Digits(2, 60, &tm->tm_sec)) return false;
    return !Take('.') || Fraction(ns);
  }

 private:
  std::string_view text_;
};

std::optional<uint64_t> ParseDate(std::string_view text, bool utc) {
  Reader in(text);
  tm tm = {};
  uint64_t ns = 0;
  if (!in.Digits(4, 9999, &tm.tm_year) || !in.Take('-') ||
      !in.Digits(2, 12, &tm.tm_mon) || !in.Take('-') ||
      !in.Digits(2, 31, &tm.tm_mday) || tm.tm_year < 1970 || tm.tm_mon == 0 ||
      tm.tm_mday == 0) {
    return std::nullopt;
  }
  tm.tm_year -= 1900;
  --tm.tm_mon;
  tm.tm_isdst = -1;
  const auto seconds_ns = [&](time_t seconds) -> std::optional<uint64_t> {
    if (seconds < 0) return std::nullopt;
    return static_cast<uint64_t>(seconds) * kNsPerSecond + ns;
  };
  if (!in.done()) {
    if (!in.Take('T') && !in.Take('t') && !in.Take(' ')) return std::nullopt;
    if (!in.Clock(&tm, &ns)) return std::nullopt;
  }
  if (in.done()) return seconds_ns(utc ? ::timegm(&tm) : ::mktime(&tm));
  if (in.Take('Z') || in.Take('z')) {
    if (!in.done()) return std::nullopt;
    return seconds_ns(::timegm(&tm));
  }
  const bool east = in.Take('+');
  int hours = 0;
  int minutes = 0;
  if ((!east && !in.Take('-')) || !in.Digits(2, 23, &hours)) {
    return std::nullopt;
  }
  in.Take(':');
  if (!in.Digits(2, 59, &minutes) || !in.done()) return std::nullopt;
  const time_t zone = (hours * 60 + minutes) * 60;
  return seconds_ns(::timegm(&tm) - (east ? zone : -zone));
}

std::optional<uint64_t> ParseClock(std::string_view text) {
  Reader in(text);
  tm tm = {};
  uint64_t ns = 0;
  if (!in.Clock(&tm, &ns) || !in.done()) return std::nullopt;
  return static_cast<uint64_t>((tm.tm_hour * 60 + tm.tm_min) * 60 + tm.tm_sec) *
             kNsPerSecond +
         ns;
}

// "25", "99.5": millionths of a hundred.
std::optional<uint64_t> ParseShare(std::string_view text) {
  const size_t point = std::min(text.find('.'), text.size());
  const auto whole = ParseUnsigned(text.substr(0, point));
  uint64_t fraction_ns = 0;
  if (point != text.size()) {
    Reader in(text.substr(point + 1));
    if (!in.Fraction(&fraction_ns) || !in.done()) return std::nullopt;
  }
  if (!whole || *whole > 100) return std::nullopt;
  const uint64_t share =
      *whole * (kShares / 100) + fraction_ns / (100'000 * uint64_t{1});
  if (share > kShares) return std::nullopt;
  return share;
}

// That time of the clock on the day of `begin_ns`.
uint64_t OnDayOf(uint64_t begin_ns, uint64_t clock_ns, bool utc) {
  const auto begin = static_cast<time_t>(begin_ns / kNsPerSecond);
  tm tm = {};
  if (utc) {
    ::gmtime_r(&begin, &tm);
  } else {
    ::localtime_r(&begin, &tm);
  }
  const auto of_day = static_cast<int>(clock_ns / kNsPerSecond);
  tm.tm_hour = of_day / 3600;
  tm.tm_min = of_day / 60 % 60;
  tm.tm_sec = of_day % 60;
  tm.tm_isdst = -1;
  const time_t seconds = utc ? ::timegm(&tm) : ::mktime(&tm);
  return seconds < 0 ? 0
                     : static_cast<uint64_t>(seconds) * kNsPerSecond +
                           clock_ns % kNsPerSecond;
}

}  // namespace

std::string TimeSpecText(uint64_t ns, bool utc) {
  constexpr char kForm[] = "%Y-%m-%dT%H:%M:%S";
  const auto second = static_cast<time_t>(ns / kNsPerSecond);
  const std::string micros = std::to_string(ns % kNsPerSecond / 1000);
  return (utc ? UtcText(second, kForm) : LocalText(second, kForm)) + '.' +
         std::string(6 - micros.size(), '0') + micros + (utc ? "Z" : "");
}

uint64_t ResolveTime(const TimeSpec& spec, const TimeRange& range, bool utc) {
  const uint64_t length =
      range.end_ns > range.begin_ns ? range.end_ns - range.begin_ns : 0;
  switch (spec.kind) {
    case TimeSpec::Kind::kAbsolute:
      return spec.value;
    case TimeSpec::Kind::kClock:
      return OnDayOf(range.begin_ns, spec.value, utc);
    case TimeSpec::Kind::kAfterBegin:
      return spec.value > UINT64_MAX - range.begin_ns
                 ? UINT64_MAX
                 : range.begin_ns + spec.value;
    case TimeSpec::Kind::kBeforeEnd:
      return spec.value >= range.end_ns ? 0 : range.end_ns - spec.value;
    case TimeSpec::Kind::kShare:
      return range.begin_ns + length / kShares * spec.value +
             length % kShares * spec.value / kShares +
             // The last operation is within 100 %.
             (spec.value == kShares ? 1 : 0);
  }
  return 0;
}

Result<TimeSpec> ParseTimeSpec(std::string_view option, std::string_view text,
                               bool utc) {
  using Kind = TimeSpec::Kind;
  const auto made =
      [](Kind kind, std::optional<uint64_t> value) -> std::optional<TimeSpec> {
    if (!value) return std::nullopt;
    return TimeSpec{kind, *value};
  };
  std::optional<TimeSpec> spec;
  if (text.starts_with('@')) {
    spec = made(Kind::kAbsolute, ParseUnsigned(text.substr(1)));
  } else if (text.starts_with('+')) {
    spec = made(Kind::kAfterBegin, ParseDuration(text.substr(1)));
  } else if (text.starts_with('-')) {
    spec = made(Kind::kBeforeEnd, ParseDuration(text.substr(1)));
  } else if (text.ends_with('%')) {
    spec = made(Kind::kShare, ParseShare(text.substr(0, text.size() - 1)));
  } else if (text.size() > 4 && text[4] == '-') {
    spec = made(Kind::kAbsolute, ParseDate(text, utc));
  } else {
    spec = made(Kind::kClock, ParseClock(text));
  }
  if (spec) return *spec;
  return Status::Invalid(
      std::string(option) + ": \"" + std::string(text) +
      "\" is no time; write 2026-01-02T14:03:05.25 (or +01:00, Z after it), "
      "14:03:05 (of the day the trace begins), +5s (from its begin), -5s "
      "(before its end), 25% or @NANOSECONDS");
}

Result<TimeWindow> ResolveWindow(const std::optional<TimeSpec>& from,
                                 const std::optional<TimeSpec>& to,
                                 const TimeRange& range, bool utc) {
  TimeWindow window;
  if (from) window.from_ns = ResolveTime(*from, range, utc);
  if (to) window.to_ns = ResolveTime(*to, range, utc);
  if (window.from_ns > window.to_ns) {
    return Status::Invalid("--from (" + TimeSpecText(window.from_ns, utc) +
                           ") is later than --to (" +
                           TimeSpecText(window.to_ns, utc) +
                           "): nothing lies between them");
  }
  return window;
}

}  // namespace tracefs
