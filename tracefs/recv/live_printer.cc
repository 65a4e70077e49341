#include "tracefs/recv/live_printer.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <utility>

#include "filters/output/chain.h"
#include "tracefs/base/clock.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/export/table.h"
#include "tracefs/format/trace_merger.h"

namespace tracefs {
namespace {

using format::ReadStep;

// How long an operation waits for one that may have begun before it.
constexpr uint64_t kPatienceNs = 333'000'000;
// Traces that have ended whose progress is remembered, so that a sender that
// comes back repeats nothing.
constexpr size_t kMaxRemembered = 65536;

// What has come of a trace, to be read once.
class Feed final : public format::ByteSource {
 public:
  void Add(ByteSpan bytes) {
    if (at_ == bytes_.size()) {
      bytes_.clear();
      at_ = 0;
    }
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
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

// One trace on its way to the printer.
struct Source {
  explicit Source(const std::shared_ptr<const KeyRing>& keys,
                  const std::string& source_name)
      : name(source_name) {
    auto owned = std::make_unique<Feed>();
    feed = owned.get();
    format::TraceReaderOptions options;
    options.name = name;
    options.follow = true;
    options.decoder = MakeDecoderFactory(keys);
    merger.Add(std::make_unique<format::TraceReader>(std::move(owned),
                                                     std::move(options)));
  }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  const std::string name;
  Feed* feed;  // owned by the merger's reader
  format::TraceMerger merger;
  std::vector<std::byte> part;  // of a frame that is not whole
  uint64_t next = 0;
  uint64_t waiting_since_ns = 0;  // 0: nothing waits
};

class LivePrinter final : public Keeper {
 public:
  LivePrinter(LivePrinterOptions options, OutputBuffer& out)
      : options_(std::move(options)),
        out_(out),
        exporter_(FindExportFormat(options_.format)->make(out, {})),
        event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

  bool live() const override { return true; }

  void Open(uint64_t client, const std::string& name,
            const net::Hello& hello) override {
    auto source = std::make_unique<Source>(options_.keys, name);
    source->feed->Add(AsBytes(hello.preamble));
    if (const auto found = remembered_.find(name); found != remembered_.end()) {
      source->next = found->second;
    }
    Event event{.client = client, .opened = true, .next = source->next};
    // Filters that cannot be undone show now.
    Print(*source, /*hurry=*/false);
    event.status = source->merger.status(0);
    if (event.status.ok()) sources_[client] = std::move(source);
    Put(std::move(event));
  }

  Status Write(uint64_t client, ByteSpan bytes, size_t whole,
               uint64_t next) override {
    Source& source = *sources_.at(client);
    if (whole != 0) {
      source.feed->Add(source.part);
      source.feed->Add(bytes.first(whole));
      source.next = next;
      memory_ -= source.part.size();
      source.part = {};
    }
    const ByteSpan rest = bytes.subspan(whole);
    if (memory_ + rest.size() > options_.max_memory) {
      return Status::System(ENOBUFS, "too many large blocks at a time");
    }
    memory_ += rest.size();
    source.part.insert(source.part.end(), rest.begin(), rest.end());
    if (whole == 0) return Status::Ok();
    Print(source, /*hurry=*/false);
    if (Status s = source.merger.status(0); !s.ok()) return s;
    static_cast<void>(out_.Flush());  // looked at in Tick
    Put({.client = client, .next = next});
    return Status::Ok();
  }

  void Close(uint64_t client) override {
    const auto found = sources_.find(client);
    if (found == sources_.end()) return;
    Source& source = *found->second;
    memory_ -= source.part.size();
    source.merger.reader(0).Stop();
    Print(source, /*hurry=*/true);
    static_cast<void>(out_.Flush());
    if (remembered_.size() >= kMaxRemembered) remembered_.clear();
    remembered_[source.name] = source.next;
    sources_.erase(found);
    std::erase_if(events_,
                  [&](const Event& event) { return event.client == client; });
  }

  std::vector<Event> TakeEvents() override {
    uint64_t count;
    (void)!::read(event_.get(), &count, sizeof count);
    return std::exchange(events_, {});
  }
  int event_fd() const override { return event_.get(); }

  Status Tick() override {
    const uint64_t now = MonotonicNs();
    for (auto& [client, source] : sources_) {
      if (source->waiting_since_ns == 0 ||
          now - source->waiting_since_ns < kPatienceNs) {
        continue;
      }
      Print(*source, /*hurry=*/true);
    }
    return out_.Flush();
  }

  Status Finish() override {
    while (!sources_.empty()) Close(sources_.begin()->first);
    exporter_->Finish();
    return out_.Flush();
  }

 private:
  void Print(Source& source, bool hurry) {
    format::Record record;
    for (;;) {
      const ReadStep step = source.merger.Next(&record, hurry);
      if (step == ReadStep::kItem) {
        exporter_->Write(record);
        continue;
      }
      const bool waits = step == ReadStep::kWait && !hurry;
      if (!waits) source.waiting_since_ns = 0;
      if (waits && source.waiting_since_ns == 0) {
        source.waiting_since_ns = MonotonicNs();
      }
      return;
    }
  }

  void Put(Event event) {
    events_.push_back(std::move(event));
    const uint64_t one = 1;
    (void)!::write(event_.get(), &one, sizeof one);
  }

  const LivePrinterOptions options_;
  OutputBuffer& out_;
  const std::unique_ptr<Exporter> exporter_;
  const UniqueFd event_;
  std::map<uint64_t, std::unique_ptr<Source>> sources_;
  std::map<std::string, uint64_t> remembered_;
  std::vector<Event> events_;
  size_t memory_ = 0;
};

}  // namespace

std::unique_ptr<Keeper> MakeLivePrinter(LivePrinterOptions options,
                                        OutputBuffer& out) {
  return std::make_unique<LivePrinter>(std::move(options), out);
}

}  // namespace tracefs
