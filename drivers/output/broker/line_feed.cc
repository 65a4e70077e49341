#include "drivers/output/broker/line_feed.h"

#include "drivers/output/broker/courier.h"
#include "tracefs/format/frame.h"

namespace tracefs {
namespace {

class BrokerFeed final : public Feed {
 public:
  BrokerFeed(std::unique_ptr<FeedFormat> format,
             std::unique_ptr<OutputFilter> framing)
      : Feed(std::move(format)), framing_(std::move(framing)) {}

  Status Initialize(const TraceIdentity& identity) override {
    TraceIdentity lines = identity;
    lines.preamble = format::EncodePreamble(
        {.serial = identity.serial, .chain = std::string(kLinesChain)});
    return framing_->Initialize(lines);
  }
  Status Send(const std::vector<FeedMessage>& messages,
              const BlockInfo& info) override {
    lines_.clear();
    for (const FeedMessage& message : messages) {
      lines_ += message.text;
      lines_ += '\n';
    }
    return framing_->Write(AsBytes(lines_), info);
  }
  Status Flush() override { return framing_->Flush(); }
  Status Release() override { return framing_->Release(); }
  size_t PreferredBlockSize() const override {
    return framing_->PreferredBlockSize();
  }
  std::optional<QueueGauge> Queue() const override { return framing_->Queue(); }

 private:
  const std::unique_ptr<OutputFilter> framing_;
  std::string lines_;
};

}  // namespace

std::unique_ptr<Feed> MakeBrokerFeed(std::unique_ptr<FeedFormat> format,
                                     std::unique_ptr<OutputFilter> framing) {
  return std::make_unique<BrokerFeed>(std::move(format), std::move(framing));
}

}  // namespace tracefs
