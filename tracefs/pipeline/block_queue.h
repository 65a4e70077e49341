// BlockQueue: the output of a tracer that this process itself reads. Blocks
// wait in bounded memory; those that find no room are refused, and so counted
// as lost by their tracer. A slow reader never delays anything.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "tracefs/pipeline/stages.h"

namespace tracefs {

// Threads: any.
class BlockQueue {
 public:
  // Bytes of a block: a short wait, and little to lose at a time.
  static constexpr size_t kBlockBytes = size_t{64} << 10;

  explicit BlockQueue(size_t limit_bytes) : limit_bytes_(limit_bytes) {}

  // False if there is no room. `always`: there is (what opens or closes the
  // trace).
  bool Put(ByteSpan first, ByteSpan second, bool always);
  // At most `max` of the next bytes; empty if there are none now.
  std::string Take(size_t max);
  void End();
  bool ended() const;
  QueueGauge gauge() const;
  // Called when there is more; null: there is no listener any more.
  void SetWake(std::function<void()> wake);

 private:
  const size_t limit_bytes_;
  mutable std::mutex mu_;
  // Guarded by mu_.
  std::deque<std::string> pieces_;
  size_t taken_ = 0;  // of the first piece
  size_t bytes_ = 0;
  bool ended_ = false;
  std::function<void()> wake_;
};

// The driver that fills the queue.
std::unique_ptr<OutputDriver> MakeBlockQueueOutput(
    std::shared_ptr<BlockQueue> queue);

}  // namespace tracefs
