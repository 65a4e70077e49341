// How a file is open in the kernel, as far as that affects further opens and
// which attributes are cached.
//
// Opens that pass through to the backing file and others do not mix: the kernel
// fails the later ones with EIO (linux/fs/fuse/iomode.c). An open counts here
// from before its reply until its RELEASE has come, which is longer than in the
// kernel: choices based on these counts are always allowed.
//
// The times of a file that may be changed through a map change without notice,
// so the kernel may cache none of its attributes, and each lseek(2) to its end
// is a request: half of what PostgreSQL sends. No map changes a size: while it
// is requested in a storm, the kernel may cache the answer for a tick.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace tracefs {

// Threads: any.
class IoOpens {
 public:
  // Counts one open, which passes through if that is wanted and there is no
  // open of the other kind, or if there is one of this kind. Returns whether it
  // does.
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

  // The backing file may be mapped and stored to from now on, without notice to
  // us or to the kernel's copy of the attributes. Permanent: a map outlives the
  // open it came from, and its end is not reported. True the first time.
  bool ExpectStores() {
    return !may_be_stored_to() && !may_be_stored_to_.exchange(true);
  }
  bool may_be_stored_to() const {
    return may_be_stored_to_.load(std::memory_order_relaxed);
  }

  // The kernel asks for the size alone, at `now_ns`. Whether that is part of a
  // storm: some dozens, at most a millisecond apart, and then any that follow
  // as closely as they can while the kernel caches the answers.
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
