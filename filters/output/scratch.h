// Scratch: memory that is reused from block to block and never cleared, unlike
// a vector's.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace tracefs {

class Scratch {
 public:
  // `bytes` of memory with any contents; what an earlier call gave is gone.
  std::span<std::byte> Get(size_t bytes) {
    if (bytes > capacity_) {
      memory_.reset();  // first, so that both are never held at once
      memory_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
      capacity_ = bytes;
    }
    return {memory_.get(), bytes};
  }

  size_t capacity() const { return capacity_; }
  // Gives back what is larger than `keep`.
  void Shrink(size_t keep) {
    if (capacity_ <= keep) return;
    memory_.reset();
    capacity_ = 0;
  }

 private:
  std::unique_ptr<std::byte[]> memory_;
  size_t capacity_ = 0;
};

}  // namespace tracefs
