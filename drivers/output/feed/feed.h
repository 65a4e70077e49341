// Feeds: instead of blocks, an output gets each operation as one event of a
// format that security tools read (tracefs/feed/feed.h). Blocks must come as
// they are made: no filter that changes their bytes may stand before.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "drivers/output/feed/option.h"
#include "tracefs/feed/feed.h"
#include "tracefs/format/block_decoder.h"
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

// A driver that makes events of the blocks it gets, in their order, losses and
// alarms behind the operations. Who derives from it says where they go.
class Feed : public OutputDriver {
 public:
  explicit Feed(std::unique_ptr<FeedFormat> format);
  Feed(const Feed&) = delete;
  Feed& operator=(const Feed&) = delete;
  Status Write(ByteSpan header, ByteSpan payload, const BlockInfo& info) final;
  // Takes all events of one block, or none.
  virtual Status Send(const std::vector<FeedMessage>& messages,
                      const BlockInfo& info) = 0;

 private:
  const std::unique_ptr<FeedFormat> format_;
  format::TraceContext trace_;
  std::vector<FeedMessage> messages_;
  std::vector<FeedMessage> other_messages_;
};

// The driver itself, or a feed of lines to it: as the entry's option says.
std::unique_ptr<OutputDriver> WithFeed(const ConfigEntry& entry,
                                       std::unique_ptr<OutputDriver> driver);

}  // namespace tracefs
