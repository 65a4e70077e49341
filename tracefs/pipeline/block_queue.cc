#include "tracefs/pipeline/block_queue.h"

#include <algorithm>

#include "tracefs/pipeline/loss.h"

namespace tracefs {
namespace {

class BlockQueueOutput final : public OutputDriver {
 public:
  explicit BlockQueueOutput(std::shared_ptr<BlockQueue> queue)
      : queue_(std::move(queue)) {}

  Status Initialize(const TraceIdentity& identity) override {
    queue_->Put(AsBytes(identity.preamble), {}, /*always=*/true);
    return Status::Ok();
  }
  Status Write(ByteSpan frame_header, ByteSpan payload,
               const BlockInfo& info) override {
    const bool always = info.last || info.sequence == 0;
    if (queue_->Put(frame_header, payload, always)) return Status::Ok();
    return DroppedStatus(LossReason::kQueueFull, "the reader is too slow");
  }
  Status Flush() override { return Status::Ok(); }
  Status Release() override {
    queue_->End();
    return Status::Ok();
  }
  size_t PreferredBlockSize() const override { return BlockQueue::kBlockBytes; }
  std::optional<QueueGauge> Queue() const override { return queue_->gauge(); }

 private:
  const std::shared_ptr<BlockQueue> queue_;
};

}  // namespace

bool BlockQueue::Put(ByteSpan first, ByteSpan second, bool always) {
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

std::string BlockQueue::Take(size_t max) {
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

void BlockQueue::End() {
  std::lock_guard lock(mu_);
  ended_ = true;
  if (wake_) wake_();
}

bool BlockQueue::ended() const {
  std::lock_guard lock(mu_);
  return ended_;
}

QueueGauge BlockQueue::gauge() const {
  std::lock_guard lock(mu_);
  return {
      .blocks = pieces_.size(), .bytes = bytes_, .limit_bytes = limit_bytes_};
}

void BlockQueue::SetWake(std::function<void()> wake) {
  std::lock_guard lock(mu_);
  wake_ = std::move(wake);
}

std::unique_ptr<OutputDriver> MakeBlockQueueOutput(
    std::shared_ptr<BlockQueue> queue) {
  return std::make_unique<BlockQueueOutput>(std::move(queue));
}

}  // namespace tracefs
