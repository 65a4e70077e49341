#include "tracefs/control/tail_queue.h"

#include <algorithm>

#include "tracefs/pipeline/loss.h"

namespace tracefs {
namespace {

class TailOutput final : public OutputDriver {
 public:
  explicit TailOutput(std::shared_ptr<TailQueue> queue)
      : queue_(std::move(queue)) {}

  Status Initialize(const TraceIdentity& identity) override {
    queue_->Put(AsBytes(identity.preamble), {}, /*always=*/true);
    return Status::Ok();
  }
  Status Write(ByteSpan frame_header, ByteSpan payload,
               const BlockInfo& info) override {
    const bool always = info.last || info.sequence == 0;
    if (queue_->Put(frame_header, payload, always)) return Status::Ok();
    return DroppedStatus(LossReason::kQueueFull, "the client is too slow");
  }
  Status Flush() override { return Status::Ok(); }
  Status Release() override {
    queue_->End();
    return Status::Ok();
  }
  size_t PreferredBlockSize() const override { return TailQueue::kBlockBytes; }
  std::optional<QueueGauge> Queue() const override { return queue_->gauge(); }

 private:
  const std::shared_ptr<TailQueue> queue_;
};

class TailStream final : public ControlStream {
 public:
  TailStream(std::shared_ptr<TailQueue> queue, std::function<void()> on_end)
      : queue_(std::move(queue)), on_end_(std::move(on_end)) {}
  ~TailStream() override {
    queue_->SetWake(nullptr);
    on_end_();
  }

  std::string Take(size_t max) override { return queue_->Take(max); }
  bool ended() const override { return queue_->ended(); }
  void OnMore(std::function<void()> wake) override {
    queue_->SetWake(std::move(wake));
  }

 private:
  const std::shared_ptr<TailQueue> queue_;
  const std::function<void()> on_end_;
};

}  // namespace

bool TailQueue::Put(ByteSpan first, ByteSpan second, bool always) {
  const size_t size = first.size() + second.size();
  std::lock_guard lock(mu_);
  if (!always && size > limit_bytes_ - std::min(bytes_, limit_bytes_)) {
    return false;
  }
  std::string& piece = pieces_.emplace_back(AsText(first));
  piece += AsText(second);
  bytes_ += size;
  if (wake_) wake_();
  return true;
}

std::string TailQueue::Take(size_t max) {
  std::lock_guard lock(mu_);
  std::string taken;
  while (!pieces_.empty() && taken.size() < max) {
    std::string& piece = pieces_.front();
    const size_t n = std::min(piece.size() - taken_, max - taken.size());
    taken.append(piece, taken_, n);
    taken_ += n;
    if (taken_ < piece.size()) break;
    pieces_.pop_front();
    taken_ = 0;
  }
  bytes_ -= taken.size();
  return taken;
}

void TailQueue::End() {
  std::lock_guard lock(mu_);
  ended_ = true;
  if (wake_) wake_();
}

bool TailQueue::ended() const {
  std::lock_guard lock(mu_);
  return ended_;
}

QueueGauge TailQueue::gauge() const {
  std::lock_guard lock(mu_);
  return {
      .blocks = pieces_.size(), .bytes = bytes_, .limit_bytes = limit_bytes_};
}

void TailQueue::SetWake(std::function<void()> wake) {
  std::lock_guard lock(mu_);
  wake_ = std::move(wake);
}

std::unique_ptr<OutputDriver> MakeTailOutput(std::shared_ptr<TailQueue> queue) {
  return std::make_unique<TailOutput>(std::move(queue));
}

std::shared_ptr<ControlStream> MakeTailStream(std::shared_ptr<TailQueue> queue,
                                              std::function<void()> on_end) {
  return std::make_shared<TailStream>(std::move(queue), std::move(on_end));
}

}  // namespace tracefs
