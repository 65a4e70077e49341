// How a file is open in the kernel, as far as that decides about further opens
// and about what is told of it.
//
// Opens that pass through to the backing file and others do not mix: the kernel
// fails the later ones with EIO (linux/fs/fuse/iomode.c). An open counts here
// from before its reply until its RELEASE has come, which is longer than in the
// kernel: what is chosen by these counts is always allowed.
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

 private:
  std::atomic<int32_t> opens_{0};  // above 0: they pass through; below: others
  std::atomic<bool> may_be_stored_to_{false};
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
