// How a file is open in the kernel, as far as that decides about further opens
// and about what is told of it.
//
// Opens that pass through to the backing file and others do not mix: the kernel
// fails the later ones with EIO (linux/fs/fuse/iomode.c). An open counts here
// from before its reply until its RELEASE has come, which is longer than in the
// kernel: what is chosen by these counts is always allowed.
//
// A file that may be stored to through a map changes its times unheard, so the
// kernel may keep none of its attributes, and each lseek(2) to its end is a
// request: half of what PostgreSQL sends. A size is changed by no map: while a
// file is asked for it in a storm the kernel may keep the answer for a tick.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace tracefs {

// Threads: any.
class IoOpens {
 public:
  // Counts one open, which passes through if that is wanted and no other kind
  // is there, or if its kind is. Returns whether it does.
  bool Enter(bool wants_passthrough) {
    int32_t now = opens_.load(std::memory_order_relaxed);
    for (;;) {
      const bool passes = now > 0 || (now == 0 && wants_passthrough);
      if (opens_.compare_exchange_weak(now, now + (passes ? 1 : -1))) {
        return passes;
      }
    }
  }
  void Leave(bool passes) { opens_.fetch_add(passes ? -1 : 1); }

  // The backing file may be mapped and stored to from now on, of which neither
  // we nor the kernel's copy of the attributes hear. For good: a map outlives
  // the open it came from, and nobody tells when it goes. True the first time.
  bool ExpectStores() {
    return !may_be_stored_to() && !may_be_stored_to_.exchange(true);
  }
  bool may_be_stored_to() const {
    return may_be_stored_to_.load(std::memory_order_relaxed);
  }

  // The kernel asks for the size alone, at `now_ns`. Whether that is one of a
  // storm: of some dozens, a millisecond apart at most, and then of any that
  // follow as closely as they can while the kernel keeps the answers.
  bool InStormOfSizes(uint64_t now_ns) {
    const auto now = static_cast<uint16_t>(now_ns >> 20);  // about 1 ms
    const auto gap = static_cast<uint16_t>(
        now - size_asked_.exchange(now, std::memory_order_relaxed));
    const uint8_t asks = size_asks_.load(std::memory_order_relaxed);
    const bool storm = asks == kStorm;
    if (gap <= (storm ? kStormGap : 1)) {
      if (!storm) size_asks_.store(asks + 1, std::memory_order_relaxed);
      return storm;
    }
    if (asks != 1) size_asks_.store(1, std::memory_order_relaxed);
    return false;
  }

 private:
  static constexpr uint8_t kStorm = 32;
  static constexpr uint16_t kStormGap = 20;  // two ticks of 100 Hz

  std::atomic<int32_t> opens_{0};  // above 0: they pass through; below: others
  std::atomic<bool> may_be_stored_to_{false};
  // Threads that ask at the same time may count as one.
  std::atomic<uint8_t> size_asks_{0};    // in a row
  std::atomic<uint16_t> size_asked_{0};  // last, in some 1 ms, modulo 2^16
};

// One open's part in these counts, given back when it ends: while the kernel
// still holds the inode, so before the reply after which it may not.
class IoClaim {
 public:
  IoClaim() = default;
  IoClaim(IoOpens& opens, bool passes) : opens_(&opens), passes_(passes) {}
  IoClaim(IoClaim&& other) noexcept { *this = std::move(other); }
  IoClaim& operator=(IoClaim&& other) noexcept {
    GiveBack();
    opens_ = std::exchange(other.opens_, nullptr);
    passes_ = other.passes_;
    return *this;
  }
  ~IoClaim() { GiveBack(); }

  void GiveBack() {
    if (opens_ == nullptr) return;
    opens_->Leave(passes_);
    opens_ = nullptr;
  }

 private:
  IoOpens* opens_ = nullptr;
  bool passes_ = false;
};

}  // namespace tracefs
