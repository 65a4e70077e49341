#include "drivers/output/remote/remote.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <optional>
#include <thread>

#include "drivers/output/remote/lasting_backlog.h"
#include "tracefs/base/notice.h"
#include "tracefs/base/thread.h"
#include "tracefs/pipeline/loss.h"

namespace tracefs {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr nanoseconds kMinPatience = seconds(1);

class Remote final : public OutputDriver {
 public:
  Remote(RemoteOptions options, std::unique_ptr<Dialer> dialer,
         std::unique_ptr<Dialer> leftovers)
      : options_(std::move(options)),
        dialer_(std::move(dialer)),
        leftover_dialer_(std::move(leftovers)) {}
  Remote(const Remote&) = delete;
  Remote& operator=(const Remote&) = delete;
  ~Remote() override { StopLeftovers(); }

  Status Initialize(const TraceIdentity& identity) override {
    full_ = identity.full;
    Link::Trace trace;
    trace.preamble = identity.preamble;
    trace.sent_before = identity.resumes;
    trace.backlog = MakeBacklog(identity);
    trace.lost = identity.lost;
    trace.shorter = [this](const Backlog& backlog) {
      gave_up_ = false;
      SayHowFull(backlog);
    };
    link_.emplace(options_.link, *dialer_, std::move(trace));
    if (Status s = link_->sender().Start("tracefs-send"); !s.ok()) return s;
    if (leftover_dialer_ != nullptr) {
      leftovers_ = options_.spill->TakeLeftovers();
      if (!leftovers_.empty()) {
        return StartThread(
            "tracefs-left", [this] { SendLeftovers(); }, &leftover_thread_);
      }
    }
    return Status::Ok();
  }

  Status Write(ByteSpan frame_header, ByteSpan payload,
               const BlockInfo& info) override {
    const uint64_t bytes = frame_header.size() + payload.size();
    std::unique_lock lock = link_->sender().Lock();
    const auto room = [&] { return HasRoom(bytes, info); };
    if (!room()) {
      if (options_.when_full == LossPolicy::kBlock && !gave_up_) {
        gave_up_ = !link_->sender().WaitFor(lock, options_.deadline, room);
      }
      if (!room()) {
        return DroppedStatus(LossReason::kQueueFull,
                             std::to_string(link_->backlog().bytes()) +
                                 " bytes wait for the receiver");
      }
    }
    Status status = link_->backlog().Append(frame_header, payload, info);
    if (!status.ok()) return status;
    SayHowFull(link_->backlog());
    lock.unlock();
    if (lasting_ == nullptr) link_->sender().Wake();
    return Status::Ok();
  }

  void Noted() override {
    if (lasting_ == nullptr) return;
    {
      const auto lock = link_->sender().Lock();
      lasting_->Commit();
    }
    link_->sender().Wake();
  }

  Status Flush() override {
    std::unique_lock lock = link_->sender().Lock();
    const Backlog& backlog = link_->backlog();
    if (backlog.empty()) return Status::Ok();
    const uint64_t last = backlog.frame(backlog.size() - 1).info.sequence;
    // A trace begins, and the mount is waiting: it goes on without a receiver.
    const bool beginning = last == 0;
    const auto durable = [&] {
      return backlog.empty() || backlog.frame(0).info.sequence > last;
    };
    const auto done = [&] {
      return durable() || (!link_->connected() && link_->failures() != 0 &&
                           (beginning || backlog.persistent()));
    };
    link_->sender().WaitFor(lock, std::max(options_.deadline, kMinPatience),
                            done);
    if (durable() || beginning || backlog.persistent()) return Status::Ok();
    return Status::System(
        ETIMEDOUT, std::to_string(backlog.size()) +
                       " blocks are not acknowledged yet" +
                       (link_->connected() ? std::string() : ": " + WhyNot()));
  }

  Status Release() override {
    link_->sender().EndWithin(std::max(options_.deadline, options_.linger));
    StopLeftovers();
    const std::unique_ptr<Backlog> left = link_->TakeBacklog();
    const Status status = TellLeft(*left);
    // Its place may be needed while the mount goes on.
    if (lasting_ != nullptr) lasting_->GiveUp();
    return status;
  }

  size_t PreferredBlockSize() const override { return options_.buffer_bytes; }

  std::optional<QueueGauge> Queue() const override {
    if (!link_) return std::nullopt;
    const auto lock = link_->sender().Lock();
    const Backlog& backlog = link_->backlog();
    QueueGauge gauge{.blocks = backlog.size(),
                     .bytes = backlog.bytes(),
                     .limit_bytes = options_.limit_bytes};
    for (size_t i = 0; i < backlog.size(); ++i) {
      gauge.events += backlog.frame(i).info.events;
    }
    return gauge;
  }

 private:
  // A receiver may be there, and say nothing.
  std::string WhyNot() const {
    const Status& failure = link_->last_failure();
    return failure.ok() ? "the receiver has not acknowledged them"
                        : failure.message();
  }

  // What could not be delivered before the end.
  Status TellLeft(const Backlog& backlog) const {
    if (backlog.empty()) return Status::Ok();
    uint64_t events = 0;
    for (size_t i = 0; i < backlog.size(); ++i) {
      events += backlog.frame(i).info.events;
    }
    const std::string what = std::to_string(backlog.size()) + " blocks with " +
                             std::to_string(events) + " operations";
    if (backlog.persistent()) {
      Notify(NoticeId::kOutputFailed,
             what + " stay in '" + options_.spill->path() +
                 "'; the next tracer with this spill directory sends them (" +
                 WhyNot() + ")");
      return Status::Ok();
    }
    return Status::System(ETIMEDOUT,
                          what +
                              " are lost: the trace ends and they could not be "
                              "delivered: " +
                              WhyNot());
  }

  std::unique_ptr<Backlog> MakeBacklog(const TraceIdentity& identity) {
    if (options_.spill != nullptr) {
      return MakeSpillBacklog(options_.spill, identity.preamble,
                              identity.serial, options_.limit_bytes);
    }
    survive::Area* const area = survive::Area::OfProcess();
    if (identity.survives == nullptr || area == nullptr) {
      return MakeMemoryBacklog();
    }
    auto lasting = std::make_unique<LastingBacklog>(*area, identity.tracer_id);
    lasting_ = lasting.get();
    if (std::atomic<int32_t>* const place =
            area->HelperOf(*identity.survives)) {
      dialer_->KeepIn(*place);
    }
    if (identity.resumes) lasting->TakeLeft(identity.next_block);
    return lasting;
  }

  // With the lock held. The end of a trace is always let in, and one block is
  // whatever its size. Under
  // kFail what is under way comes in beyond the limit, for it was let begin.
  bool HasRoom(uint64_t bytes, const BlockInfo& info) const {
    const Backlog& backlog = link_->backlog();
    return info.last || backlog.empty() ||
           backlog.bytes() + bytes <= options_.limit_bytes + info.under_way;
  }

  // With the lock held. Half is kept for what is on its way when operations
  // begin to be refused.
  void SayHowFull(const Backlog& backlog) {
    if (options_.when_full != LossPolicy::kFail || !full_) return;
    const bool full = backlog.bytes() > options_.limit_bytes / 2;
    if (full != said_full_) {
      said_full_ = full;
      full_(full);
    }
  }

  // The thread of what was left behind.
  void SendLeftovers() {
    for (SpillDirectory::Leftover& trace : leftovers_) {
      Link link(options_.link, *leftover_dialer_,
                {.preamble = std::move(trace.preamble),
                 .backlog = std::move(trace.backlog),
                 .sent_before = true});
      Sender& sender = link.sender();
      sender.Finish();
      if (!sender.Start("tracefs-send").ok()) return;
      while (!sender.AwaitEnd(Sender::Clock::now() +
                              std::chrono::milliseconds(200))) {
        if (stop_leftovers_.load()) return;
      }
    }
  }

  void StopLeftovers() {
    stop_leftovers_.store(true);
    if (leftover_thread_.joinable()) leftover_thread_.join();
  }

  RemoteOptions options_;
  const std::unique_ptr<Dialer> dialer_;
  const std::unique_ptr<Dialer> leftover_dialer_;
  OutputFull full_;
  LastingBacklog* lasting_ = nullptr;  // link_'s; null: it is another kind
  std::optional<Link> link_;
  // Guarded by the link's lock.
  bool gave_up_ = false;  // waiting; until something was delivered
  bool said_full_ = false;

  std::vector<SpillDirectory::Leftover> leftovers_;
  std::atomic<bool> stop_leftovers_{false};
  std::thread leftover_thread_;
};

}  // namespace

std::unique_ptr<OutputDriver> MakeRemote(RemoteOptions options,
                                         std::unique_ptr<Dialer> dialer,
                                         std::unique_ptr<Dialer> leftovers) {
  return std::make_unique<Remote>(std::move(options), std::move(dialer),
                                  std::move(leftovers));
}

}  // namespace tracefs
