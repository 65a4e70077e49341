// The keys that arriving traces are read with, which may be others from some
// moment on.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "filters/output/key_ring.h"

namespace tracefs {

// Threads: any.
class CurrentKeys {
 public:
  explicit CurrentKeys(std::shared_ptr<const KeyRing> keys)
      : keys_(std::move(keys)) {}

  void Set(std::shared_ptr<const KeyRing> keys) {
    std::lock_guard lock(mu_);
    keys_ = std::move(keys);
  }
  std::shared_ptr<const KeyRing> Get() const {
    std::lock_guard lock(mu_);
    return keys_;
  }

 private:
  mutable std::mutex mu_;
  std::shared_ptr<const KeyRing> keys_;  // guarded by mu_; never null
};

}  // namespace tracefs
