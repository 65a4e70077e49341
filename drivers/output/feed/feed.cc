#include "drivers/output/feed/feed.h"

#include <algorithm>
#include <iterator>

#include "tracefs/base/clock.h"

namespace tracefs {
namespace {

// A line each, to a driver that takes bytes: a file.
class LineFeed final : public Feed {
 public:
  LineFeed(std::unique_ptr<FeedFormat> format,
           std::unique_ptr<OutputDriver> driver)
      : Feed(std::move(format)), driver_(std::move(driver)) {}

  Status Initialize(const TraceIdentity& identity) override {
    TraceIdentity bare = identity;
    bare.preamble.clear();  // of traces
    return driver_->Initialize(bare);
  }
  Status Send(const std::vector<FeedMessage>& messages,
              const BlockInfo& info) override {
    lines_.clear();
    for (const FeedMessage& message : messages) {
      lines_ += message.text;
      lines_ += '\n';
    }
    return driver_->Write({}, AsBytes(lines_), info);
  }
  Status Flush() override { return driver_->Flush(); }
  Status Release() override { return driver_->Release(); }
  size_t PreferredBlockSize() const override {
    return driver_->PreferredBlockSize();
  }
  std::optional<QueueGauge> Queue() const override { return driver_->Queue(); }

 private:
  const std::unique_ptr<OutputDriver> driver_;
  std::string lines_;
};

}  // namespace

Feed::Feed(std::unique_ptr<FeedFormat> format) : format_(std::move(format)) {
  trace_.name = "feed";
  trace_.report = [this](const format::Report& report) {
    if (report.kind != format::ReportKind::kLoss) return;
    FeedMessage& message = other_messages_.emplace_back();
    message.real_ns = RealNs();
    message.id = "loss";
    message.urgency = FeedMessage::Urgency::kLoss;
    format_->AppendLoss({.real_ns = message.real_ns,
                         .count = report.count,
                         .reason = report.detail,
                         .trace = &trace_},
                        &message.text);
  };
  trace_.alarm = [this](const format::AlarmRecord& alarm) {
    FeedMessage& message = other_messages_.emplace_back();
    message.real_ns = alarm.operation->real_ns;
    message.id = "alarm";
    message.urgency = FeedMessage::Urgency::kAlarm;
    format_->AppendAlarm(alarm, &message.text);
  };
}

Status Feed::Write(ByteSpan, ByteSpan payload, const BlockInfo& info) {
  messages_.clear();
  other_messages_.clear();
  format::BlockDecoder block(&trace_);
  if (!block.Open({payload.begin(), payload.end()}, info.sequence, 0)) {
    return Status::Corrupt(
        "feed: a block that cannot be read; a filter that changes blocks "
        "must not stand before a feed");
  }
  format::Record record;
  while (!block.at_end()) {
    block.Next(&record);
    FeedMessage& message = messages_.emplace_back();
    message.real_ns = record.real_ns;
    message.id = OpName(record.event.op);
    format_->Append(record, &message.text);
  }
  std::move(other_messages_.begin(), other_messages_.end(),
            std::back_inserter(messages_));
  if (messages_.empty()) return Status::Ok();
  return Send(messages_, info);
}

std::unique_ptr<OutputDriver> WithFeed(const ConfigEntry& entry,
                                       std::unique_ptr<OutputDriver> driver) {
  const std::string_view feed = FeedOf(entry);
  if (feed.empty()) return driver;
  return std::make_unique<LineFeed>(MakeFeedFormat(feed), std::move(driver));
}

}  // namespace tracefs
