// Loss accounting: what a tracer could not keep, by reason. Nothing is lost
// silently: counts go into the trace as LOSS messages and into its FINAL.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/format/block_info.h"

namespace tracefs {

// Names (LossReasonName) are part of the trace format: never renamed.
enum class LossReason : uint8_t {
  kOutputError,  // "output_error": the output refused a block (full disk, …)
  kTooLarge,     // "too_large": a message larger than a block
  kQueueFull,    // "queue_full": a queue was full and the policy is to drop
  kThrottled,    // "throttled": over the configured rate
  kDegraded,     // "degraded": only counted, by kind, as the policy has it
  kRefused,      // "refused": the operation was not done: it could not have
                 // been recorded, and the policy is to fail
  kOverrun,      // "overrun": process records that the kernel had no room for
  kDied,         // "died": counted by an aggregate in a daemon that was killed
                 // before that was kept for the next
};
inline constexpr size_t kLossReasonCount = 8;
std::string_view LossReasonName(LossReason reason);

// The status of a stage that does not take a block because of its policy. Not a
// fault of the output: it is counted, and is not an error of the trace.
Status DroppedStatus(LossReason reason, std::string_view why);
// The reason for losing a block that a stage refused with `status`.
LossReason LossReasonOf(const Status& status);

struct Loss {
  LossReason reason{};
  uint64_t count = 0;
  uint64_t first_ns = 0;  // begin times, CLOCK_MONOTONIC
  uint64_t last_ns = 0;
  // For kDegraded, when it is written: what was lost, by kind.
  std::vector<format::OpTotal> by_kind = {};
};

// Threads: any; a loss is rare, so a mutex is cheap enough.
class LossCounter {
 public:
  // `count` events that began between the two times were not kept.
  void Add(LossReason reason, uint64_t count, uint64_t first_ns,
           uint64_t last_ns);

  // A loss that was not taken yet, for a LOSS message; it then counts as
  // reported. Give it back with Return, Add's twin, if the message was not
  // written.
  std::optional<Loss> TakeUnreported();
  void Return(const Loss& loss);

  uint64_t Total(LossReason reason) const;
  // Of these, what was taken for a message; and so many were, before.
  uint64_t Reported(LossReason reason) const;
  void Restore(LossReason reason, uint64_t reported);

 private:
  mutable std::mutex mu_;
  // Guarded by mu_.
  std::array<Loss, kLossReasonCount> unreported_{};
  std::array<uint64_t, kLossReasonCount> total_{};
};

// The losses that blocks in transit report: such a block may itself be lost,
// after a stage has taken it. Threads: any.
class LossesOnTheWay {
 public:
  void Sent(uint64_t sequence, const std::vector<Loss>& losses);
  // The loss that the block reported; nothing if it reported none, or is too
  // old.
  std::vector<Loss> Take(uint64_t sequence);

 private:
  static constexpr size_t kRemembered = 8192;

  std::mutex mu_;
  std::map<uint64_t, std::vector<Loss>> blocks_;  // guarded by mu_
};

}  // namespace tracefs
