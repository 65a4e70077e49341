// TracerStats: what one tracer has done so far, for operators.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/event/op.h"
#include "tracefs/pipeline/loss.h"
#include "tracefs/pipeline/stages.h"

namespace tracefs {

// What a tracer is for.
enum class TracerKind : uint8_t {
  kConfig,
  kRules,  // of another tracer, for which it collects operations
  kTail,   // a client that listens
};

// Counts at one moment, give or take what threads are doing meanwhile.
struct TracerStats {
  // A stage of the output chain, in its order; the last one is the driver.
  struct Stage {
    std::string name;
    uint64_t blocks = 0;  // given to it
    uint64_t bytes = 0;
    uint64_t refused = 0;  // of `blocks`
    uint64_t ns = 0;       // in it and, in the same thread, all that follows
    std::optional<QueueGauge> queue;
  };

  uint32_t id = 0;
  TracerKind kind = TracerKind::kConfig;
  std::string name;
  std::string chain;
  bool running = false;  // else it was stopped and may be started again
  bool unbuffered = false;

  uint64_t seen = 0;     // operations its filter was asked about
  uint64_t matched = 0;  // of those, the ones it keeps
  uint64_t encoded = 0;  // messages made: matched, and those before operations
  uint64_t counted = 0;  // matched, and counted by an aggregate driver
  uint64_t written = 0;  // messages in blocks that the output chain has taken
  uint64_t blocks = 0;   // taken
  std::array<uint64_t, kLossReasonCount> lost{};
  std::array<uint64_t, kOpCount> by_op{};  // written, when done

  // Every kSampling-th operation of a thread is timed.
  static constexpr uint64_t kSampling = 256;
  uint64_t filter_samples = 0;
  uint64_t filter_ns = 0;
  uint64_t encode_samples = 0;
  uint64_t encode_ns = 0;

  std::vector<Stage> stages;
  Status output_error;  // the first one

  // The part of `written` that is in transit, in a queue of the output chain.
  uint64_t Queued() const {
    uint64_t sum = 0;
    for (const Stage& stage : stages) {
      if (stage.queue) sum += stage.queue->events;
    }
    return sum < written ? sum : written;
  }

  uint64_t TotalLost() const {
    uint64_t sum = 0;
    for (const uint64_t n : lost) sum += n;
    return sum;
  }
};

}  // namespace tracefs
