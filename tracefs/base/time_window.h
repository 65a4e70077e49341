// The times of --from and --to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tracefs/base/status.h"

namespace tracefs {

// A moment as it was named. What it is depends on the trace.
struct TimeSpec {
  enum class Kind : uint8_t {
    kAbsolute,    // ns since 1970
    kClock,       // ns since midnight of the day on which the trace begins
    kAfterBegin,  // ns
    kBeforeEnd,   // ns
    kShare,       // millionths of the time from begin to end
  };
  Kind kind = Kind::kAbsolute;
  uint64_t value = 0;

  bool NeedsBegin() const { return kind != Kind::kAbsolute; }
  bool NeedsEnd() const {
    return kind == Kind::kBeforeEnd || kind == Kind::kShare;
  }
};

// "2026-01-02T14:03:05.25+01:00" (parts from behind may be missing; without a
// zone it is the reader's, or UTC), "14:03", "14:03:05.25", "+5s", "-250ms",
// "25%", "@1767323045000000000". kInvalid, with what there is, for anything
// else; `option` is for the message.
Result<TimeSpec> ParseTimeSpec(std::string_view option, std::string_view text,
                               bool utc);

// As --from takes it: "2026-01-02T14:03:05.250000", with Z in UTC.
std::string TimeSpecText(uint64_t ns, bool utc);

// When a trace, or several, began and ended: ns since 1970.
struct TimeRange {
  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;
};

// What `spec` means for traces of `range`, of whose end only NeedsEnd() asks:
// ns since 1970. `utc`: as of ParseTimeSpec.
uint64_t ResolveTime(const TimeSpec& spec, const TimeRange& range, bool utc);

// Half open: from <= t < to; ns since 1970.
struct TimeWindow {
  uint64_t from_ns = 0;
  uint64_t to_ns = UINT64_MAX;

  bool Has(uint64_t ns) const { return ns >= from_ns && ns < to_ns; }
  bool whole() const { return from_ns == 0 && to_ns == UINT64_MAX; }
};

// What --from and --to, where they were given, mean for traces of `range`.
// kInvalid if they are the wrong way round.
Result<TimeWindow> ResolveWindow(const std::optional<TimeSpec>& from,
                                 const std::optional<TimeSpec>& to,
                                 const TimeRange& range, bool utc);

}  // namespace tracefs
