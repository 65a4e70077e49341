#include "tracefs/recv/live_printer.h"

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "tracefs/base/clock.h"
#include "tracefs/base/event_fd.h"
#include "tracefs/base/worker.h"
#include "tracefs/export/table.h"
#include "tracefs/format/frame.h"
#include "tracefs/recv/live_source.h"
#include "tracefs/recv/shared_decoders.h"

namespace tracefs {
namespace {

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

// How long an operation waits for one that may have begun before it.
constexpr uint64_t kPatienceNs = 333'000'000;
constexpr auto kTick = milliseconds(50);
// For one client, before the next has its turn; a block is decoded whole.
constexpr auto kPrinterTurn = milliseconds(2);
// From one client, until it is not read from for a while.
constexpr size_t kMaxWaitingBytes = size_t{1} << 20;
// Traces that have ended whose progress is remembered, so that a sender that
// comes back repeats nothing.
constexpr size_t kMaxPrintedEnds = 16384;

// A client: what has come of it, on its way to the thread that prints.
struct Intake {
  std::string name;
  std::optional<net::Hello> hello;  // not looked at yet
  std::vector<std::byte> part;      // of a frame that is not whole
  // Whole frames, the first of them from `at` on.
  struct Piece {
    std::vector<std::byte> bytes;
    uint64_t next = 0;  // number after the last of them
    size_t at = 0;
  };
  std::deque<Piece> pieces;
  size_t waiting_bytes = 0;  // of all pieces
  bool closing = false;
  bool failed = false;
  SteadyClock::duration spent{};  // on it, as far as turns are concerned

  // Used by the thread that prints.
  std::unique_ptr<LiveSource> source;
  uint64_t next = 0;
  size_t footprint = 0;  // of `source`, when it was last looked at

  bool has_work() const {
    return closing || (!failed && (hello.has_value() || !pieces.empty()));
  }
};

class LivePrinter final : public Keeper {
 public:
  LivePrinter(LivePrinterOptions options, OutputBuffer& out)
      : options_(std::move(options)),
        share_((options_.max_memory -
                MinLiveMemory(options_.max_block_bytes) / 2) /
               3),
        out_(out),
        decoders_(options_.keys, {.max_filters = options_.max_filters,
                                  .max_block_bytes = options_.max_block_bytes}),
        exporter_(FindLineFormat(options_.format)->make(out, {})) {}
  LivePrinter(const LivePrinter&) = delete;
  LivePrinter& operator=(const LivePrinter&) = delete;

  Status Start() override {
    return worker_.Start("tracefs-print", [this] { Run(); });
  }

  bool live() const override { return true; }

  void Open(uint64_t client, const std::string& name,
            const net::Hello& hello) override {
    std::lock_guard lock(mu_);
    Intake& in = intakes_[client];
    in.name = name;
    in.hello = hello;
    // It begins with what those who were there before have had.
    in.spent = turn_;
    worker_.Wake();
  }

  Status Write(uint64_t client, ByteSpan bytes, size_t whole,
               uint64_t next) override {
    std::lock_guard lock(mu_);
    const auto found = intakes_.find(client);
    if (found == intakes_.end()) return Status::Ok();
    Intake& in = found->second;
    if (whole != 0) {
      Intake::Piece piece{.bytes = std::move(in.part), .next = next};
      parts_bytes_ -= piece.bytes.size();
      in.part = {};
      piece.bytes.insert(piece.bytes.end(), bytes.begin(),
                         bytes.begin() + static_cast<ptrdiff_t>(whole));
      in.waiting_bytes += piece.bytes.size();
      waiting_bytes_ += piece.bytes.size();
      in.pieces.push_back(std::move(piece));
      worker_.Wake();
    }
    const ByteSpan rest = bytes.subspan(whole);
    if (parts_bytes_ + rest.size() > share_) {
      return Status::System(ENOBUFS, "too many large blocks at a time");
    }
    parts_bytes_ += rest.size();
    in.part.insert(in.part.end(), rest.begin(), rest.end());
    return Status::Ok();
  }

  bool Busy(uint64_t client) const override {
    std::lock_guard lock(mu_);
    const auto found = intakes_.find(client);
    return found != intakes_.end() &&
           (found->second.waiting_bytes >= kMaxWaitingBytes ||
            waiting_bytes_ >= share_);
  }

  void Close(uint64_t client) override {
    std::lock_guard lock(mu_);
    const auto found = intakes_.find(client);
    if (found == intakes_.end()) return;
    CloseIntake(found->second);
    std::erase_if(events_,
                  [&](const Event& event) { return event.client == client; });
    worker_.Wake();
  }

  std::vector<Event> TakeEvents() override {
    event_.Clear();
    std::lock_guard lock(mu_);
    return std::exchange(events_, {});
  }
  int event_fd() const override { return event_.get(); }

  Status Tick() override {
    std::lock_guard lock(mu_);
    return output_;
  }

  Status Finish() override {
    std::unique_lock lock(mu_);
    if (!worker_.started()) return Status::Ok();
    finishing_ = true;
    for (auto& [client, in] : intakes_) CloseIntake(in);
    worker_.Wake();
    idle_.wait(lock, [&] { return finished_; });
    return output_;
  }

 private:
  using Intakes = std::map<uint64_t, Intake>;

  // --- With the lock held.

  void CloseIntake(Intake& in) {
    in.closing = true;
    // Nothing was read from it yet.
    in.hello.reset();
    parts_bytes_ -= in.part.size();
    in.part = {};
  }

  void Put(Event event) {
    events_.push_back(std::move(event));
    event_.Set();
  }

  void DropPieces(Intake& in) {
    waiting_bytes_ -= in.waiting_bytes;
    in.waiting_bytes = 0;
    in.pieces.clear();
  }

  // Its trace is still being printed for a connection that is gone.
  bool MustWait(uint64_t client, const Intake& in) const {
    return in.hello && std::any_of(intakes_.begin(), intakes_.end(),
                                   [&](const Intakes::value_type& other) {
                                     return other.first != client &&
                                            other.second.closing &&
                                            other.second.name == in.name;
                                   });
  }

  // The one with work whose blocks took the least time; end() if there is none.
  Intakes::iterator Next() {
    auto best = intakes_.end();
    for (auto one = intakes_.begin(); one != intakes_.end(); ++one) {
      const Intake& in = one->second;
      if (!in.has_work() ||
          (best != intakes_.end() && best->second.spent <= in.spent) ||
          MustWait(one->first, in)) {
        continue;
      }
      best = one;
    }
    return best;
  }

  // --- The thread that prints. An intake stays where it is until this thread
  // removes it, and so do its first piece and its source.

  void Run() {
    auto ticked = SteadyClock::now();
    std::unique_lock lock(mu_);
    while (!worker_.ending()) {
      const auto next = Next();
      if (next != intakes_.end()) {
        const auto began = SteadyClock::now();
        // Being idle saves nothing up.
        turn_ = next->second.spent = std::max(next->second.spent, turn_);
        TakeTurn(next, lock);
        if (const auto found = intakes_.find(last_client_);
            found != intakes_.end()) {
          found->second.spent += SteadyClock::now() - began;
        }
        BoundMemory(lock);
      } else if (finishing_ && !finished_ && intakes_.empty()) {
        lock.unlock();
        exporter_->Finish();
        const Status status = out_.Flush();
        lock.lock();
        output_ = status;
        finished_ = true;
        idle_.notify_all();
      } else {
        lock.unlock();
        worker_.WaitFor(kTick);
        lock.lock();
      }
      if (SteadyClock::now() - ticked >= kTick) {
        PrintWhatWaits(lock);
        ticked = SteadyClock::now();
      }
    }
  }

  void TakeTurn(Intakes::iterator at, std::unique_lock<std::mutex>& lock) {
    const uint64_t client = at->first;
    Intake& in = at->second;
    last_client_ = client;
    if (in.hello && !in.failed) {
      const net::Hello hello = *std::exchange(in.hello, std::nullopt);
      if (const auto found = remembered_.find(in.name);
          found != remembered_.end()) {
        in.next = found->second;
      }
      lock.unlock();
      in.source = std::make_unique<LiveSource>(in.name, decoders_.Factory(),
                                               share_ / 4);
      in.source->Add(AsBytes(hello.preamble));
      // Filters that cannot be undone show now.
      in.source->Print(*exporter_, /*hurry=*/false);
      lock.lock();
      Answer(client, in, /*opened=*/true);
    } else if (!in.pieces.empty() && !in.failed) {
      Intake::Piece& piece = in.pieces.front();
      lock.unlock();
      PrintPiece(*in.source, piece);
      static_cast<void>(out_.Flush());
      lock.lock();
      output_ = out_.status();
      const bool done = piece.at == piece.bytes.size();
      if (!done && in.source->status().ok()) return Measure(in);
      in.next = piece.next;
      waiting_bytes_ -= piece.bytes.size();
      in.waiting_bytes -= piece.bytes.size();
      in.pieces.pop_front();
      Answer(client, in, /*opened=*/false);
    } else if (in.closing) {
      lock.unlock();
      if (in.source != nullptr) in.source->End(*exporter_);
      static_cast<void>(out_.Flush());
      lock.lock();
      output_ = out_.status();
      Remember(in);
      DropPieces(in);
      sources_bytes_ -= in.footprint;
      intakes_.erase(at);
    }
  }

  // Frame by frame, until the turn is over.
  void PrintPiece(LiveSource& source, Intake::Piece& piece) {
    const auto until = SteadyClock::now() + kPrinterTurn;
    while (piece.at != piece.bytes.size() && source.status().ok()) {
      // The parser has checked all of it.
      const ByteSpan rest = ByteSpan(piece.bytes).subspan(piece.at);
      format::FrameHeader header;
      if (!format::DecodeFrameHeader(rest.first<format::kFrameHeaderBytes>(),
                                     &header)) {
        piece.at = piece.bytes.size();
        return;
      }
      const size_t size = format::kFrameHeaderBytes + header.payload_bytes;
      source.Add(rest.first(size));
      piece.at += size;
      source.Print(*exporter_, /*hurry=*/false);
      if (SteadyClock::now() >= until) return;
    }
  }

  // With the lock held: the answer to the client.
  void Answer(uint64_t client, Intake& in, bool opened) {
    const Status status = in.source->status();
    Measure(in);
    if (!status.ok()) Fail(client, in, opened, status);
    if (in.closing || !status.ok()) return;
    Put({.client = client, .opened = opened, .next = in.next});
  }

  void Fail(uint64_t client, Intake& in, bool opened, const Status& status) {
    DropPieces(in);
    sources_bytes_ -= std::exchange(in.footprint, 0);
    in.failed = true;
    if (!in.closing) {
      Put({.client = client, .opened = opened, .next = 0, .status = status});
    }
    in.source.reset();
  }

  void Measure(Intake& in) {
    const size_t now = in.source->footprint();
    sources_bytes_ += now - std::exchange(in.footprint, now);
  }

  void Remember(const Intake& in) {
    if (in.next == 0) return;
    if (remembered_.size() >= kMaxPrintedEnds) remembered_.clear();
    remembered_[in.name] = in.next;
  }

  // Operations that wait for older ones are printed at once if there are too
  // many of them; and who holds too much all the same must go.
  void BoundMemory(std::unique_lock<std::mutex>& lock) {
    if (sources_bytes_ <= share_ / 4 * 3) return;
    PrintEarly(lock, 0);
    while (sources_bytes_ > share_ / 4 * 3) {
      const auto largest = std::max_element(
          intakes_.begin(), intakes_.end(),
          [](const Intakes::value_type& a, const Intakes::value_type& b) {
            return a.second.footprint < b.second.footprint;
          });
      if (largest == intakes_.end() || largest->second.footprint == 0) return;
      Fail(largest->first, largest->second, /*opened=*/false,
           Status::System(ENOBUFS,
                          "what the trace says of itself takes too much "
                          "memory beside that of others; see --max-memory"));
    }
  }

  void PrintWhatWaits(std::unique_lock<std::mutex>& lock) {
    PrintEarly(lock, kPatienceNs);
  }

  // Prints all of those whose operations have waited that long.
  void PrintEarly(std::unique_lock<std::mutex>& lock, uint64_t patience_ns) {
    // Only this thread removes one, and new ones have no source.
    const uint64_t now = MonotonicNs();
    for (auto& [client, in] : intakes_) {
      if (in.source == nullptr || in.source->waiting_since_ns() == 0 ||
          now - in.source->waiting_since_ns() < patience_ns) {
        continue;
      }
      lock.unlock();
      in.source->Print(*exporter_, /*hurry=*/true);
      lock.lock();
      Measure(in);
    }
    lock.unlock();
    const Status status = out_.Flush();
    lock.lock();
    output_ = status;
  }

  const LivePrinterOptions options_;
  // Bytes that halves of frames may take, frames that wait, and sources.
  const size_t share_;
  OutputBuffer& out_;
  SharedDecoders decoders_;
  const std::unique_ptr<Exporter> exporter_;
  const EventFd event_;
  std::map<std::string, uint64_t> remembered_;  // of the thread that prints
  uint64_t last_client_ = 0;                    // whose turn it was

  mutable std::mutex mu_;  // guards all below
  std::condition_variable idle_;
  Intakes intakes_;
  size_t parts_bytes_ = 0;
  size_t waiting_bytes_ = 0;
  size_t sources_bytes_ = 0;
  SteadyClock::duration turn_{};  // what the one whose turn it was had spent
  std::vector<Event> events_;
  Status output_;
  bool finishing_ = false;
  bool finished_ = false;
  Worker worker_;
};

}  // namespace

std::unique_ptr<Keeper> MakeLivePrinter(LivePrinterOptions options,
                                        OutputBuffer& out) {
  options.max_memory =
      std::max(options.max_memory, MinLiveMemory(options.max_block_bytes));
  return std::make_unique<LivePrinter>(std::move(options), out);
}

}  // namespace tracefs
