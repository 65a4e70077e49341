#include "tracefs/export/feed.h"

namespace tracefs {
namespace {

constexpr std::string_view kNames[] = {"ocsf", "ecs", "cef"};

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

std::span<const std::string_view> FeedNames() { return kNames; }

std::unique_ptr<FeedFormat> MakeFeedFormat(std::string_view name) {
  if (name == "ocsf") return MakeOcsfFeed();
  if (name == "ecs") return MakeEcsFeed();
  if (name == "cef") return MakeCefFeed();
  return nullptr;
}

std::unique_ptr<Exporter> MakeOcsfExporter(OutputBuffer& out,
                                           const ExportOptions&) {
  return std::make_unique<FeedExporter>(out, MakeOcsfFeed());
}

std::unique_ptr<Exporter> MakeEcsExporter(OutputBuffer& out,
                                          const ExportOptions&) {
  return std::make_unique<FeedExporter>(out, MakeEcsFeed());
}

std::unique_ptr<Exporter> MakeCefExporter(OutputBuffer& out,
                                          const ExportOptions&) {
  return std::make_unique<FeedExporter>(out, MakeCefFeed());
}

}  // namespace tracefs
