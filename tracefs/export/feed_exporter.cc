#include "tracefs/export/feed_exporter.h"

#include <string>
#include <utility>

namespace tracefs {
namespace {

class FeedExporter final : public Exporter {
 public:
  FeedExporter(OutputBuffer& out, std::unique_ptr<FeedFormat> feed)
      : out_(out), feed_(std::move(feed)) {}

  void Write(const format::Record& record) override {
    line_.clear();
    feed_->Append(record, &line_);
    line_ += '\n';
    out_.Append(line_);
  }

  void WriteAlarm(const format::AlarmRecord& record) override {
    out_.Append(AlarmLine(record));
  }
  std::string AlarmLine(const format::AlarmRecord& record) override {
    std::string line;
    feed_->AppendAlarm(record, &line);
    return line + '\n';
  }

 private:
  OutputBuffer& out_;
  const std::unique_ptr<FeedFormat> feed_;
  std::string line_;
};

}  // namespace

std::unique_ptr<Exporter> MakeFeedExporter(OutputBuffer& out,
                                           std::unique_ptr<FeedFormat> feed) {
  return std::make_unique<FeedExporter>(out, std::move(feed));
}

}  // namespace tracefs
