// A worker thread's buffer for what it reads: page-aligned, as O_DIRECT below
// wants, and kept from request to request.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>

namespace tracefs {

// At least `size` bytes, or null when there is no memory. Valid until the
// thread's next call.
inline char* IoBuffer(size_t size) {
  struct Free {
    void operator()(char* p) const { std::free(p); }
  };
  thread_local std::unique_ptr<char, Free> buffer;
  thread_local size_t capacity = 0;
  if (size > capacity) {
    constexpr size_t kPage = 4096;
    const size_t rounded = (size + kPage - 1) & ~(kPage - 1);
    buffer.reset(static_cast<char*>(std::aligned_alloc(kPage, rounded)));
    capacity = buffer ? rounded : 0;
  }
  return buffer.get();
}

}  // namespace tracefs
