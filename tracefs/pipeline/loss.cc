#include "tracefs/pipeline/loss.h"

#include <algorithm>
#include <cerrno>

#include "tracefs/base/choice.h"

namespace tracefs {
namespace {

// No output fails with these.
constexpr int kQueueFullError = ENOBUFS;
constexpr int kThrottledError = ETIME;

}  // namespace

std::string_view LossReasonName(LossReason reason) {
  static constexpr Choice<LossReason> kNames[] = {
      {"output_error", LossReason::kOutputError},
      {"too_large", LossReason::kTooLarge},
      {"queue_full", LossReason::kQueueFull},
      {"throttled", LossReason::kThrottled},
      {"degraded", LossReason::kDegraded},
      {"refused", LossReason::kRefused},
      {"overrun", LossReason::kOverrun},
      {"died", LossReason::kDied},
  };
  static_assert(std::size(kNames) == kLossReasonCount);
  return WordOf(kNames, reason, "unknown");
}

Status DroppedStatus(LossReason reason, std::string_view why) {
  return Status::System(
      reason == LossReason::kThrottled ? kThrottledError : kQueueFullError,
      why);
}

LossReason LossReasonOf(const Status& status) {
  switch (status.error()) {
    case kQueueFullError:
      return LossReason::kQueueFull;
    case kThrottledError:
      return LossReason::kThrottled;
    default:
      return LossReason::kOutputError;
  }
}

void LossCounter::Add(LossReason reason, uint64_t count, uint64_t first_ns,
                      uint64_t last_ns) {
  std::lock_guard lock(mu_);
  total_[static_cast<size_t>(reason)] += count;
  Loss& loss = unreported_[static_cast<size_t>(reason)];
  if (loss.count == 0) {
    loss = {reason, count, first_ns, last_ns};
    return;
  }
  loss.count += count;
  loss.first_ns = std::min(loss.first_ns, first_ns);
  loss.last_ns = std::max(loss.last_ns, last_ns);
}

std::optional<Loss> LossCounter::TakeUnreported() {
  std::lock_guard lock(mu_);
  for (Loss& loss : unreported_) {
    if (loss.count == 0) continue;
    const Loss taken = loss;
    loss = {};
    return taken;
  }
  return std::nullopt;
}

void LossCounter::Return(const Loss& returned) {
  std::lock_guard lock(mu_);
  Loss& loss = unreported_[static_cast<size_t>(returned.reason)];
  if (loss.count == 0) {
    loss = returned;
    return;
  }
  loss.count += returned.count;
  loss.first_ns = std::min(loss.first_ns, returned.first_ns);
  loss.last_ns = std::max(loss.last_ns, returned.last_ns);
}

uint64_t LossCounter::Total(LossReason reason) const {
  std::lock_guard lock(mu_);
  return total_[static_cast<size_t>(reason)];
}

uint64_t LossCounter::Reported(LossReason reason) const {
  std::lock_guard lock(mu_);
  const auto r = static_cast<size_t>(reason);
  return total_[r] - unreported_[r].count;
}

void LossCounter::Restore(LossReason reason, uint64_t reported) {
  std::lock_guard lock(mu_);
  total_[static_cast<size_t>(reason)] += reported;
}

void LossesOnTheWay::Sent(uint64_t sequence, const std::vector<Loss>& losses) {
  if (losses.empty()) return;
  std::lock_guard lock(mu_);
  if (blocks_.size() == kRemembered) blocks_.erase(blocks_.begin());
  blocks_[sequence] = losses;
}

std::vector<Loss> LossesOnTheWay::Take(uint64_t sequence) {
  std::lock_guard lock(mu_);
  const auto found = blocks_.find(sequence);
  if (found == blocks_.end()) return {};
  std::vector<Loss> losses = std::move(found->second);
  blocks_.erase(found);
  return losses;
}

}  // namespace tracefs
