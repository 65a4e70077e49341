// DegradedCounts: what is left of the blocks that a tracer with
// LossPolicy::kDegrade could not keep: operations by kind.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "tracefs/event/op.h"
#include "tracefs/format/block_info.h"

namespace tracefs {

// Threads: any.
class DegradedCounts {
 public:
  // [1]: "before" messages.
  using ByOp = std::array<std::array<uint32_t, kOpCount>, 2>;

  // A block that is about to be sent, and may be lost at once, or later behind
  // a stage that took it. The latest few thousand are remembered.
  void Sent(uint64_t sequence, const ByOp& by_op);
  // That block is lost. False if it is not known any more. Its number may be
  // used again.
  bool Lost(uint64_t sequence);

  // What was lost since the last call, by message id. Give it back if it could
  // not be written.
  std::vector<format::OpTotal> Take();
  void Return(const std::vector<format::OpTotal>& totals);

 private:
  static constexpr size_t kRemembered = 8192;

  std::mutex mu_;
  // Guarded by mu_.
  std::array<std::array<uint64_t, kOpCount>, 2> lost_{};
  // Numbers go up.
  std::deque<std::pair<uint64_t, std::vector<format::OpTotal>>> on_the_way_;
};

}  // namespace tracefs
