// Feeds: instead of blocks, an output gets each operation as one event of a
// format that security tools read (tracefs/export/feed.h). Blocks must come as
// they are made: no filter that changes their bytes may stand before.
#ifndef DRIVERS_OUTPUT_FEED_FEED_H_
#define DRIVERS_OUTPUT_FEED_FEED_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "drivers/output/feed/option.h"
#include "tracefs/export/feed.h"
#include "tracefs/pipeline/stages.h"

namespace tracefs {

// One event.
struct FeedMessage {
  std::string text;  // without a line end
  uint64_t real_ns = 0;
  std::string_view id;  // the operation, "loss" or "alarm"; static
  enum class Urgency : uint8_t { kOperation, kLoss, kAlarm };
  Urgency urgency = Urgency::kOperation;
};

// Where the events of a feed go. Calls and their results are those of an
// OutputDriver.
class FeedSink {
 public:
  virtual ~FeedSink() = default;
  virtual Status Initialize(const TraceIdentity& identity) = 0;
  // All events of one block, or none.
  virtual Status Write(const std::vector<FeedMessage>& messages,
                       const BlockInfo& info) = 0;
  virtual Status Flush() = 0;
  virtual Status Release() = 0;
  virtual size_t PreferredBlockSize() const = 0;
  virtual std::optional<QueueGauge> Queue() const { return std::nullopt; }
};

// Events go out in the order of their blocks, losses and alarms behind them.
std::unique_ptr<OutputDriver> MakeFeed(std::unique_ptr<FeedFormat> format,
                                       std::unique_ptr<FeedSink> sink);

// A line each, to a driver that takes bytes: a file.
std::unique_ptr<FeedSink> MakeLineSink(std::unique_ptr<OutputDriver> driver);

// The driver itself, or a feed of lines to it: as the entry's option says.
std::unique_ptr<OutputDriver> WithFeed(const ConfigEntry& entry,
                                       std::unique_ptr<OutputDriver> driver);

}  // namespace tracefs

#endif  // DRIVERS_OUTPUT_FEED_FEED_H_
