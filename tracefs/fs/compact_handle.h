// CompactHandle: a file handle (name_to_handle_at(2)) in 32 bytes, on the heap
// only beyond 24. It names a file without keeping a descriptor open, and, by
// its generation, never a later file of the same inode number.
#pragma once

#include <fcntl.h>

#include <cstdint>
#include <cstring>
#include <utility>

#include "tracefs/base/unique_fd.h"

namespace tracefs {

class CompactHandle {
 public:
  CompactHandle() = default;
  CompactHandle(CompactHandle&& other) noexcept { Swap(other); }
  CompactHandle& operator=(CompactHandle&& other) noexcept {
    Swap(other);
    return *this;
  }
  ~CompactHandle() {
    if (size_ > kInline) delete[] heap_;
  }

  // The handle of `name` in `dir`, not following links, or of `dir` itself if
  // `name` is empty. None, and errno, where the file system has no handles
  // (EOPNOTSUPP) or there is no such file. Those of some file systems (overlay)
  // tell files apart and cannot be opened.
  static CompactHandle Of(int dir, const char* name);

  explicit operator bool() const { return size_ != 0; }
  // A descriptor of the file, opened with `flags` as of open(2); `mount` is any
  // open file of its mount. On failure none, and errno: ESTALE, the file is
  // gone; EPERM, not allowed.
  UniqueFd Open(int mount, int flags = O_PATH) const;

  // Its bytes, and from bytes that were kept: none if `size` is not that of a
  // handle.
  int32_t type() const { return type_; }
  size_t size() const { return size_; }
  const uint8_t* bytes() const { return data(); }
  static CompactHandle From(int32_t type, const uint8_t* bytes, size_t size);

  friend bool operator==(const CompactHandle& a, const CompactHandle& b) {
    return a.size_ == b.size_ && a.type_ == b.type_ &&
           std::memcmp(a.data(), b.data(), a.size_) == 0;
  }

 private:
  static constexpr size_t kInline = 24;

  const uint8_t* data() const { return size_ > kInline ? heap_ : inline_; }
  void Swap(CompactHandle& other) {
    std::swap(size_, other.size_);
    std::swap(type_, other.type_);
    std::swap(inline_, other.inline_);  // covers heap_, too
  }

  uint8_t size_ = 0;  // 0: none
  int32_t type_ = 0;
  union {
    uint8_t inline_[kInline] = {};
    uint8_t* heap_;
  };
};

}  // namespace tracefs
