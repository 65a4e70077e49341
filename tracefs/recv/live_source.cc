#include "tracefs/recv/live_source.h"

#include <algorithm>
#include <cstring>

#include "tracefs/base/clock.h"

namespace tracefs {
namespace {

using format::ReadStep;

// A map's entry beside its contents.
constexpr size_t kNodeBytes = 64;

size_t ItemsOf(const format::TraceContext& trace) {
  const auto& d = trace.description;
  const auto& s = trace.stats;
  return d.messages.size() + d.arguments.size() + d.header.properties.size() +
         s.losses.size() + s.lost_messages.size() + s.unknown_messages.size() +
         s.unknown_arguments.size();
}

size_t BytesOf(const format::TraceContext& trace) {
  const auto& d = trace.description;
  const auto& s = trace.stats;
  size_t bytes = 0;
  for (const auto& [id, name] : d.messages) bytes += kNodeBytes + name.size();
  for (const auto& [id, argument] : d.arguments) {
    // Its width is in another map besides.
    bytes += 2 * kNodeBytes + sizeof argument + argument.name.size();
  }
  for (const auto& [key, value] : d.header.properties) {
    bytes += kNodeBytes + key.size() + value.size();
  }
  for (const auto& [reason, count] : s.losses) {
    bytes += kNodeBytes + reason.size();
  }
  return bytes +
         kNodeBytes * (s.lost_messages.size() + s.unknown_messages.size() +
                       s.unknown_arguments.size());
}

}  // namespace

// What has come of the trace, to be read once.
class LiveSource::Feed final : public format::ByteSource {
 public:
  void Add(ByteSpan bytes) {
    if (at_ == bytes_.size()) {
      bytes_.clear();
      at_ = 0;
    }
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  // Forgets all, and gives back its memory.
  void Clear() {
    bytes_ = std::vector<std::byte>();  // {} would only empty it
    at_ = 0;
  }
  size_t memory_bytes() const { return bytes_.capacity(); }

  Result<size_t> Read(std::span<std::byte> out) override {
    const size_t n = std::min(out.size(), bytes_.size() - at_);
    if (n != 0) std::memcpy(out.data(), bytes_.data() + at_, n);
    at_ += n;
    return n;
  }
  bool MayGrow() override { return true; }

 private:
  std::vector<std::byte> bytes_;
  size_t at_ = 0;
};

LiveSource::LiveSource(std::string name, format::PayloadDecoderFactory decoder,
                       size_t max_open_bytes)
    : name_(std::move(name)), merger_(max_open_bytes) {
  auto feed = std::make_unique<Feed>();
  feed_ = feed.get();
  format::TraceReaderOptions options;
  options.name = name_;
  options.follow = true;
  options.decoder = std::move(decoder);
  // They come in blocks of their own, and need not wait.
  options.alarm = [this](const format::AlarmRecord& alarm) {
    if (exporter_ != nullptr) exporter_->WriteAlarm(alarm);
  };
  merger_.Add(std::make_unique<format::TraceReader>(std::move(feed),
                                                    std::move(options)));
}

void LiveSource::Add(ByteSpan bytes) { feed_->Add(bytes); }

void LiveSource::Print(Exporter& exporter, bool hurry) {
  ReadStep step;
  exporter_ = &exporter;
  {
    format::Record record;
    while ((step = merger_.Next(&record, hurry)) == ReadStep::kItem) {
      exporter.Write(record);
    }
  }
  exporter_ = nullptr;
  if (step != ReadStep::kWait || hurry) {
    waiting_since_ns_ = 0;
  } else if (waiting_since_ns_ == 0) {
    waiting_since_ns_ = MonotonicNs();
  }
  // What a reader leaves comes after the end of its trace.
  feed_->Clear();
  merger_.ReleaseMemory();
}

void LiveSource::End(Exporter& exporter) {
  merger_.reader(0).Stop();
  Print(exporter, /*hurry=*/true);
}

size_t LiveSource::footprint() const {
  const format::TraceContext& trace = merger_.reader(0).context();
  if (const size_t items = ItemsOf(trace); items != described_items_) {
    described_items_ = items;
    described_bytes_ = BytesOf(trace);
  }
  constexpr size_t kFixedBytes = 8192;
  return kFixedBytes + name_.size() + trace.name.size() + described_bytes_ +
         merger_.memory_bytes() + feed_->memory_bytes();
}

}  // namespace tracefs
