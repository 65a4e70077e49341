#include "tracefs/text/time_text.h"

#include <time.h>

#include <cstdio>

#include "tracefs/base/clock.h"
#include "tracefs/base/date_text.h"
#include "tracefs/text/decimal.h"
#include "tracefs/text/put_text.h"

namespace tracefs {
namespace {

constexpr size_t kDateBytes = 10;  // YYYY-MM-DD

// `digits` digits with leading zeros.
char* PutPadded(char* out, uint64_t value, int digits) {
  for (int i = digits; i-- > 0; value /= 10) {
    out[i] = static_cast<char>('0' + value % 10);
  }
  return out + digits;
}

char* PutSeconds(char* out, uint64_t ns, bool fraction) {
  out = PutDecimal(out, ns / kNsPerSecond);
  if (!fraction) return out;
  *out++ = '.';
  return PutPadded(out, ns % kNsPerSecond, 9);
}

}  // namespace

std::string Rfc3339(uint64_t real_ns, int digits) {
  std::array<char, 12> fraction;
  std::snprintf(fraction.data(), fraction.size(), ".%09u",
                static_cast<unsigned>(real_ns % kNsPerSecond));
  return UtcText(static_cast<time_t>(real_ns / kNsPerSecond),
                 "%Y-%m-%dT%H:%M:%S") +
         std::string(fraction.data(), static_cast<size_t>(digits) + 1) + 'Z';
}

size_t TimeText::columns() const {
  switch (form_) {
    case TimeForm::kDate:
      return 26;
    case TimeForm::kIso:
      return utc_ ? 30 : 35;
    case TimeForm::kNs:
      return 19;
    case TimeForm::kClock:
    case TimeForm::kEpoch:
    case TimeForm::kRelative:
    case TimeForm::kDelta:
      break;
  }
  return 15;
}

char* TimeText::Put(char* out, uint64_t real_ns, uint32_t resolution_ns) {
  if (resolution_ns == 0) return PutText(out, "--:--:--");
  const bool fraction = resolution_ns < kNsPerSecond;
  switch (form_) {
    case TimeForm::kEpoch:
      return PutSeconds(out, real_ns, fraction);
    case TimeForm::kNs:
      return PutDecimal(out, real_ns);
    case TimeForm::kRelative:
    case TimeForm::kDelta: {
      if (!origin_known_) origin_ns_ = real_ns;
      origin_known_ = true;
      // Of several traces one may be a little before.
      const bool before = real_ns < origin_ns_;
      if (before) *out++ = '-';
      out = PutSeconds(
          out, before ? origin_ns_ - real_ns : real_ns - origin_ns_, true);
      if (form_ == TimeForm::kDelta) origin_ns_ = real_ns;
      return out;
    }
    case TimeForm::kClock:
    case TimeForm::kDate:
    case TimeForm::kIso:
      break;
  }
  const uint64_t second = real_ns / kNsPerSecond;
  const uint64_t ns = real_ns % kNsPerSecond;
  if (second != clock_second_ || !clock_known_) SetClock(second);
  if (form_ != TimeForm::kClock) {
    out = PutText(out, day().substr(0, kDateBytes));
    *out++ = form_ == TimeForm::kIso ? 'T' : ' ';
  }
  out = PutText(out, {clock_.data(), clock_.size()});
  if (fraction) {
    *out++ = '.';
    out = form_ == TimeForm::kIso ? PutPadded(out, ns, 9)
                                  : PutPadded(out, ns / 1000, 6);
  }
  if (form_ != TimeForm::kIso) return out;
  if (utc_) {
    *out++ = 'Z';
    return out;
  }
  const std::string_view zone = day().substr(kDateBytes + 1);  // +0100
  out = PutText(out, zone.substr(0, 3));
  *out++ = ':';
  return PutText(out, zone.substr(3));
}

void TimeText::SetClock(uint64_t second) {
  const auto t = static_cast<time_t>(second);
  struct tm tm = {};
  if (utc_) {
    ::gmtime_r(&t, &tm);
  } else {
    ::localtime_r(&t, &tm);
  }
  char* at = PutPadded(clock_.data(), static_cast<uint64_t>(tm.tm_hour), 2);
  *at++ = ':';
  at = PutPadded(at, static_cast<uint64_t>(tm.tm_min), 2);
  *at++ = ':';
  PutPadded(at, static_cast<uint64_t>(tm.tm_sec), 2);
  day_size_ = std::strftime(day_.data(), day_.size(), "%Y-%m-%d %z", &tm);
  clock_second_ = second;
  clock_known_ = true;
}

bool TimeText::IsNewDay(uint64_t real_ns) {
  if (form_ != TimeForm::kClock) return false;
  const uint64_t second = real_ns / kNsPerSecond;
  if (second == told_second_ && day_told_) return false;
  told_second_ = second;
  SetClock(second);
  const bool is_new =
      day_told_ && day() != std::string_view(told_day_.data(), told_size_);
  told_day_ = day_;
  told_size_ = day_size_;
  day_told_ = true;
  return is_new;
}

}  // namespace tracefs
