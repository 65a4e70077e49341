// BiasedLock: a lock for data that one thread uses all the time and others
// almost never (a flusher, a control command).
//
// The owner's Enter and Exit are plain loads and stores; the revoker pays for
// both sides with membarrier(2), which makes every running thread of the
// process execute a full barrier (linux/kernel/sched/membarrier.c; the same
// trick as userspace RCU's). Where membarrier is refused, and under
// ThreadSanitizer, which cannot see it, the owner uses sequentially consistent
// operations instead.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace tracefs {

class BiasedLock {
 public:
  BiasedLock();
  BiasedLock(const BiasedLock&) = delete;
  BiasedLock& operator=(const BiasedLock&) = delete;

  // Owner thread only. Not recursive. Enter waits only while a revoker is
  // inside, which is bounded by what the revoker does.
  void Enter() {
    for (;;) {
      if (asymmetric_) {
        inside_.store(1, std::memory_order_relaxed);
        std::atomic_signal_fence(std::memory_order_seq_cst);
        if (revoked_.load(std::memory_order_acquire) == 0) return;
      } else {
        inside_.store(1, std::memory_order_seq_cst);
        if (revoked_.load(std::memory_order_seq_cst) == 0) return;
      }
      inside_.store(0, std::memory_order_release);
      WaitForRevoker();
    }
  }
  void Exit() { inside_.store(0, std::memory_order_release); }

  // Any other thread: excludes the owner between Revoke and Restore. May wait
  // as long as the owner stays inside.
  void Revoke();
  void Restore();

 private:
  void WaitForRevoker();

  const bool asymmetric_;
  std::atomic<uint32_t> inside_{0};
  std::atomic<uint32_t> revoked_{0};
  std::mutex revokers_;  // held from Revoke to Restore
};

// RAII forms.
class OwnerSection {
 public:
  explicit OwnerSection(BiasedLock& lock) : lock_(lock) { lock_.Enter(); }
  ~OwnerSection() { lock_.Exit(); }
  OwnerSection(const OwnerSection&) = delete;
  OwnerSection& operator=(const OwnerSection&) = delete;

 private:
  BiasedLock& lock_;
};

class RevokerSection {
 public:
  explicit RevokerSection(BiasedLock& lock) : lock_(lock) { lock_.Revoke(); }
  ~RevokerSection() { lock_.Restore(); }
  RevokerSection(const RevokerSection&) = delete;
  RevokerSection& operator=(const RevokerSection&) = delete;

 private:
  BiasedLock& lock_;
};

}  // namespace tracefs
