#include "drivers/output/broker/line_feed.h"

#include <array>

#include "drivers/output/broker/courier.h"
#include "tracefs/format/frame.h"

namespace tracefs {
namespace {

class BrokerFeed final : public Feed {
 public:
  BrokerFeed(std::unique_ptr<FeedFormat> format,
             std::unique_ptr<OutputDriver> driver)
      : Feed(std::move(format)), driver_(std::move(driver)) {}

  Status Initialize(const TraceIdentity& identity) override {
    serial_ = identity.serial;
    TraceIdentity lines = identity;
    lines.preamble = format::EncodePreamble(
        {.serial = serial_, .chain = std::string(kLinesChain)});
    return driver_->Initialize(lines);
  }
  Status Send(const std::vector<FeedMessage>& messages,
              const BlockInfo& info) override {
    lines_.clear();
    for (const FeedMessage& message : messages) {
      lines_ += message.text;
      lines_ += '\n';
    }
    std::array<std::byte, format::kFrameHeaderBytes> header;
    format::EncodeFrameHeader(header,
                              {.sequence = info.sequence, .serial = serial_},
                              AsBytes(lines_));
    return driver_->Write(header, AsBytes(lines_), info);
  }
  Status Flush() override { return driver_->Flush(); }
  Status Release() override { return driver_->Release(); }
  size_t PreferredBlockSize() const override {
    return driver_->PreferredBlockSize();
  }
  std::optional<QueueGauge> Queue() const override { return driver_->Queue(); }

 private:
  const std::unique_ptr<OutputDriver> driver_;
  format::Serial serial_{};
  std::string lines_;
};

}  // namespace

std::unique_ptr<Feed> MakeBrokerFeed(std::unique_ptr<FeedFormat> format,
                                     std::unique_ptr<OutputDriver> driver) {
  return std::make_unique<BrokerFeed>(std::move(format), std::move(driver));
}

}  // namespace tracefs
