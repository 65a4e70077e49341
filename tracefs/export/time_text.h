// TimeText: the time of an operation as text, in every form there is.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tracefs/export/exporter.h"

namespace tracefs {

// Used by one thread: it remembers the second and the day it wrote last.
class TimeText {
 public:
  static constexpr size_t kRoom = 64;  // of any form

  explicit TimeText(const ExportOptions& options)
      : form_(options.time == TimeStyle::kEpoch ? TimeForm::kEpoch
                                                : options.form),
        utc_(options.time == TimeStyle::kUtc) {}

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
