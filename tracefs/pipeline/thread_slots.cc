#include "tracefs/pipeline/thread_slots.h"

#include <algorithm>

namespace tracefs {
namespace {

std::atomic<uint64_t> next_instance{1};

}  // namespace

// A thread's use of a slot.
class ThreadSlots::Handle {
 public:
  ~Handle() { Drop(); }
  ThreadSlot* Find(uint64_t instance) const {
    return instance == instance_ ? slot_.get() : nullptr;
  }
  void Set(uint64_t instance, std::shared_ptr<ThreadSlot> slot) {
    Drop();
    instance_ = instance;
    slot_ = std::move(slot);
  }

 private:
  void Drop() {
    if (slot_) slot_->owned.store(false, std::memory_order_release);
    slot_.reset();
  }

  uint64_t instance_ = 0;
  std::shared_ptr<ThreadSlot> slot_;
};

ThreadSlots::ThreadSlots() : instance_(next_instance.fetch_add(1)) {}

ThreadSlot& ThreadSlots::OfThread() {
  thread_local Handle handle;
  if (ThreadSlot* slot = handle.Find(instance_)) return *slot;
  std::lock_guard lock(slots_mu_);
  for (const std::shared_ptr<ThreadSlot>& slot : slots_) {
    bool expected = false;
    if (slot->owned.compare_exchange_strong(expected, true)) {
      handle.Set(instance_, slot);
      return *slot;
    }
  }
  slots_.push_back(
      std::make_shared<ThreadSlot>(static_cast<uint32_t>(slots_.size() + 1)));
  handle.Set(instance_, slots_.back());
  return *slots_.back();
}

std::vector<std::shared_ptr<ThreadSlot>> ThreadSlots::All() const {
  std::lock_guard lock(slots_mu_);
  return slots_;
}

void ThreadSlots::Park(uint64_t begin_ns) {
  std::lock_guard lock(parked_mu_);
  parked_.insert(begin_ns);
}

void ThreadSlots::Unpark(uint64_t begin_ns) {
  std::lock_guard lock(parked_mu_);
  parked_.erase(parked_.find(begin_ns));
}

uint64_t ThreadSlots::OldestBegin() const {
  // A thread's writes become visible to others in less than this.
  constexpr uint64_t kSettledNs = 1'000'000;
  uint64_t oldest = MonotonicNs() - kSettledNs;
  // Unknown is 0: the reader waits for the next.
  std::unique_lock lock(slots_mu_, std::try_to_lock);
  if (!lock.owns_lock()) return 0;
  for (const std::shared_ptr<ThreadSlot>& slot : slots_) {
    // In this order: an operation that ends meanwhile is seen in one of them.
    const uint64_t running =
        slot->running_since.load(std::memory_order_acquire);
    if (running == ThreadSlot::kEntering) return 0;
    const uint64_t since = slot->open_since.load(std::memory_order_relaxed);
    if (running != 0) oldest = std::min(oldest, running);
    if (since != 0) oldest = std::min(oldest, since);
  }
  std::unique_lock parked(parked_mu_, std::try_to_lock);
  if (!parked.owns_lock()) return 0;
  if (!parked_.empty()) oldest = std::min(oldest, *parked_.begin());
  return oldest;
}

}  // namespace tracefs
