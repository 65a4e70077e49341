#include "filters/output/async.h"

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "filters/output/payload_filter.h"
#include "filters/output/scratch.h"
#include "tracefs/base/thread.h"
#include "tracefs/pipeline/loss.h"

namespace tracefs {
namespace {

using std::chrono::nanoseconds;

// Nobody is asked to wait forever for a Flush or for the last block.
constexpr nanoseconds kMinPatience = std::chrono::seconds(1);

class Async final : public OutputFilter {
 public:
  Async(const AsyncOptions& options, std::unique_ptr<OutputFilter> next)
      : options_(options), next_(std::move(next)), buffers_(options.buffers) {
    for (Buffer& buffer : buffers_) empty_.push_back(&buffer);
  }
  Async(const Async&) = delete;
  Async& operator=(const Async&) = delete;
  ~Async() override { EndThread(); }

  Status Initialize(const TraceIdentity& identity) override {
    lost_ = identity.lost;
    if (Status s = next_->Initialize(identity); !s.ok()) return s;
    return StartThread(
        "tracefs-async", [this] { Run(); }, &thread_);
  }

  Status Write(ByteSpan block, const BlockInfo& info) override {
    std::unique_lock lock(mu_);
    Buffer* const buffer = TakeEmpty(lock, info);
    if (buffer == nullptr) {
      return DroppedStatus(LossReason::kQueueFull,
                           "all " + std::to_string(options_.buffers) +
                               " buffers of async are full");
    }
    // The copy needs no lock: the buffer is in no queue.
    lock.unlock();
    buffer->bytes = buffer->memory.Get(block.size());
    if (!block.empty()) {
      std::memcpy(buffer->bytes.data(), block.data(), block.size());
    }
    buffer->info = info;
    lock.lock();
    full_.push_back(buffer);
    full_bytes_ += block.size();
    full_events_ += info.events;
    full_wake_.notify_one();
    return Status::Ok();
  }

  Status Flush() override {
    std::unique_lock lock(mu_);
    const uint64_t ticket = ++flushes_asked_;
    full_wake_.notify_one();
    if (!WaitForProgress(lock, [&] { return flushes_done_ >= ticket; })) {
      return Status::System(ETIMEDOUT,
                            "the output has taken nothing for some time");
    }
    return std::exchange(flush_status_, Status::Ok());
  }

  Status Release() override {
    EndThread();
    const Status released = next_->Release();
    const Status failed = std::exchange(flush_status_, Status::Ok());
    return released.ok() ? failed : released;
  }

  size_t PreferredBlockSize() const override {
    return SmallerBlock(options_.block_bytes, next_->PreferredBlockSize());
  }

  std::optional<QueueGauge> Queue() const override {
    std::lock_guard lock(mu_);
    return QueueGauge{.blocks = full_.size(),
                      .bytes = full_bytes_,
                      .limit_bytes = options_.buffers * options_.block_bytes,
                      .events = full_events_};
  }

 private:
  struct Buffer {
    Scratch memory;
    std::span<std::byte> bytes;
    BlockInfo info;
  };

  // A buffer from the empty queue, by the policy; null: there is none.
  Buffer* TakeEmpty(std::unique_lock<std::mutex>& lock, const BlockInfo& info) {
    const auto any = [this] { return !empty_.empty(); };
    if (info.last) {
      WaitForProgress(lock, any);
    } else if (options_.when_full.block && !gave_up_) {
      gave_up_ = !moved_.wait_for(lock, options_.when_full.deadline, any);
    }
    if (empty_.empty()) return nullptr;
    Buffer* const buffer = empty_.front();
    empty_.pop_front();
    gave_up_ = false;
    return buffer;
  }

  // Waits for `done` for as long as blocks keep moving.
  template <typename Done>
  bool WaitForProgress(std::unique_lock<std::mutex>& lock, Done done) {
    const nanoseconds patience =
        std::max(options_.when_full.deadline, kMinPatience);
    for (;;) {
      const uint64_t seen = moves_;
      moved_.wait_for(lock, patience, [&] { return done() || moves_ != seen; });
      if (done()) return true;
      if (moves_ == seen) return false;
    }
  }

  void Run() {
    std::unique_lock lock(mu_);
    for (;;) {
      full_wake_.wait(lock, [this] {
        return !full_.empty() || flushes_done_ != flushes_asked_ || ending_;
      });
      if (!full_.empty()) {
        PushOne(lock);
      } else if (flushes_done_ != flushes_asked_) {
        const uint64_t ticket = flushes_asked_;
        lock.unlock();
        Status status = next_->Flush();
        lock.lock();
        KeepFirst(std::move(status));
        flushes_done_ = ticket;
        Moved();
      } else {
        return;
      }
    }
  }

  void PushOne(std::unique_lock<std::mutex>& lock) {
    Buffer* const buffer = full_.front();
    full_.pop_front();
    lock.unlock();
    Status status = next_->Write(buffer->bytes, buffer->info);
    if (!status.ok() && lost_) lost_(buffer->info, status);
    lock.lock();
    full_bytes_ -= buffer->bytes.size();
    full_events_ -= buffer->info.events;
    // What was dropped by policy is counted and no error.
    if (LossReasonOf(status) == LossReason::kOutputError) {
      KeepFirst(std::move(status));
    }
    empty_.push_back(buffer);
    Moved();
  }

  void KeepFirst(Status status) {
    if (flush_status_.ok()) flush_status_ = std::move(status);
  }

  void Moved() {
    ++moves_;
    moved_.notify_all();
  }

  void EndThread() {
    if (!thread_.joinable()) return;
    {
      std::lock_guard lock(mu_);
      ending_ = true;
    }
    full_wake_.notify_one();
    thread_.join();
  }

  const AsyncOptions options_;
  const std::unique_ptr<OutputFilter> next_;
  BlockLost lost_;
  std::vector<Buffer> buffers_;

  mutable std::mutex mu_;              // guards all below
  std::condition_variable full_wake_;  // for the thread: something to do
  std::condition_variable moved_;      // for the others: it has done something
  std::deque<Buffer*> empty_;
  std::deque<Buffer*> full_;
  // The block under way included.
  uint64_t full_bytes_ = 0;
  uint64_t full_events_ = 0;
  uint64_t moves_ = 0;
  uint64_t flushes_asked_ = 0;
  uint64_t flushes_done_ = 0;
  Status flush_status_;  // the first failure since it was last asked for
  bool gave_up_ = false;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<OutputFilter> MakeAsync(const AsyncOptions& options,
                                        std::unique_ptr<OutputFilter> next) {
  return std::make_unique<Async>(options, std::move(next));
}

}  // namespace tracefs
