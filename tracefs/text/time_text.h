// TimeText: the time of an operation as text, in every form there is.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tracefs/base/choice.h"

namespace tracefs {

enum class TimeStyle : uint8_t {
  kLocal,  // HH:MM:SS.uuuuuu in the reader's time zone
  kUtc,
  kEpoch,  // seconds.nanoseconds since 1970
};

// How times are written for people.
enum class TimeForm : uint8_t {
  kClock,     // 14:03:07.123456
  kDate,      // 2026-01-02 14:03:07.123456
  kIso,       // 2026-01-02T14:03:07.123456789+01:00 (RFC 3339)
  kEpoch,     // 1767362587.123456789
  kNs,        // 1767362587123456789
  kRelative,  // 0.000012345: seconds since the first operation that is shown
  kDelta,     // the same since the one before
};

// --time-format.
inline constexpr Choice<TimeForm> kTimeForms[] = {
    {"clock", TimeForm::kClock}, {"date", TimeForm::kDate},
    {"iso", TimeForm::kIso},     {"epoch", TimeForm::kEpoch},
    {"ns", TimeForm::kNs},       {"relative", TimeForm::kRelative},
    {"delta", TimeForm::kDelta}};

// "2026-01-02T03:04:05.123456789Z", with so many digits.
std::string Rfc3339(uint64_t real_ns, int digits);

// Used by one thread: it remembers the second and the day it wrote last.
class TimeText {
 public:
  static constexpr size_t kRoom = 64;  // of any form

  TimeText(TimeStyle style, TimeForm form)
      : form_(style == TimeStyle::kEpoch ? TimeForm::kEpoch : form),
        utc_(style == TimeStyle::kUtc) {}

  // Columns of a listing.
  size_t columns() const;

  // Returns the end. `resolution_ns` as in Record: 0 = there is no time.
  char* Put(char* out, uint64_t real_ns, uint32_t resolution_ns);

  // Whether it is another day than that of the call before, in the form that
  // does not tell the day; day() then is "2026-01-03 +0100".
  bool IsNewDay(uint64_t real_ns);
  std::string_view day() const { return {day_.data(), day_size_}; }

 private:
  void SetClock(uint64_t second);

  const TimeForm form_;
  const bool utc_;
  bool clock_known_ = false;
  uint64_t clock_second_ = 0;
  std::array<char, 8> clock_{};
  std::array<char, 48> day_{};  // and the zone
  size_t day_size_ = 0;
  bool day_told_ = false;
  uint64_t told_second_ = 0;
  std::array<char, 48> told_day_{};
  size_t told_size_ = 0;
  bool origin_known_ = false;  // of kRelative and kDelta
  uint64_t origin_ns_ = 0;
};

}  // namespace tracefs
