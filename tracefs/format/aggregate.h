// AggregateRecord: what was counted for one key in one period. Writer and
// reader of the AGGREGATE message, FORMAT.md section 8a.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "tracefs/base/bytes.h"
#include "tracefs/event/field.h"
#include "tracefs/format/message_cursor.h"
#include "tracefs/format/message_writer.h"
#include "tracefs/tally/sums.h"

namespace tracefs::format {

// A bucket of a histogram and its count, as they stand in a message: u16 and
// u64.
inline constexpr size_t kHistogramPairBytes = 2 + 8;

struct HistogramBucketCount {
  uint16_t bucket = 0;  // tally/histogram.h
  uint64_t count = 0;
};

struct HistogramRecord {
  bool present = false;
  uint64_t sum = 0;
  uint64_t max = 0;
  std::vector<HistogramBucketCount> buckets;  // in order, none empty

  uint64_t Count() const;
  // tally/histogram.h; the smallest value is not known.
  uint64_t Quantile(double share) const;
};

// One part of a key. Its name in JSON Lines and in metrics is `label`.
struct AggregateKeyPart {
  uint16_t arg_id = 0;  // of a field, or kKeyOp or kDirectory
  uint64_t number = 0;  // of numeric parts
  std::string_view text;
};

struct AggregateRecord {
  // More parts than any writer makes are hostile.
  static constexpr size_t kMaxKeyParts = 16;

  uint32_t aggregate = 1;  // which one of the tracer's aggregate drivers
  bool total = false;      // since the trace began; else since the last one
  uint64_t from_ns = 0;    // monotonic
  uint64_t to_ns = 0;
  bool other = false;  // what belongs to no key that has a message of its own
  std::vector<AggregateKeyPart> key = {};
  uint64_t count = 0;   // operations
  uint64_t missed = 0;  // at most so many more, counted under `other`
  std::optional<uint64_t> errors = {};
  std::optional<uint64_t> bytes = {};
  HistogramRecord latency = {};  // ns
  HistogramRecord size = {};     // bytes of a transfer; its sum is `bytes`

  // For writers: what was told before, too, period by period.
  bool repeated = false;

  // For readers.
  uint32_t tracer_id = 0;
  uint64_t real_from_ns = 0;  // since the epoch
  uint64_t real_to_ns = 0;
};

// What was counted, as far as it was; which of the bytes were read is not told.
tally::TimedSums SumsOf(const AggregateRecord& record);

// Takes what a reader finds; the views hold during the call.
using AggregateSink = std::function<void(const AggregateRecord&)>;

// The longest message there is: two full histograms and a long key.
inline constexpr size_t kAggregateMaxBytes = size_t{96} << 10;

// False, and nothing written, if it does not fit.
bool WriteAggregate(MessageWriter& out, const AggregateRecord& record);

// Reads the arguments of an AGGREGATE message; views point into them. False if
// they end within an argument: `record` then has what came before.
bool ReadAggregate(ByteSpan arguments, const ArgumentWidths& widths,
                   AggregateRecord* record);

// How a part is called: the JSON key of its field, "op", "dir".
std::string_view AggregateKeyLabel(uint16_t arg_id);
// Whether the part is text.
bool AggregateKeyIsText(uint16_t arg_id);

}  // namespace tracefs::format
