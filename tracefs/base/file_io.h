// Files read and written as a whole: goes on when the kernel does only a part
// or a signal interrupts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "tracefs/base/bytes.h"
#include "tracefs/base/status.h"

namespace tracefs {

// The bytes of `fd` from its current position to the end, at most `max_bytes`.
// kSystem, with `what`, if it cannot be read.
Result<std::string> ReadText(int fd, size_t max_bytes, std::string_view what);

// Reads from `offset` until `out` is full or the file ends. Returns the number
// of bytes, or -1 with errno.
ssize_t ReadAt(int fd, std::span<std::byte> out, uint64_t offset);
// The same; false if `out` could not be filled.
inline bool ReadAllAt(int fd, std::span<std::byte> out, uint64_t offset) {
  return ReadAt(fd, out, offset) == static_cast<ssize_t>(out.size());
}

// Writes all of `bytes`. kSystem, with `what`, on failure: also with ENOSPC, if
// a file takes nothing and gives no error.
Status WriteAll(int fd, ByteSpan bytes, std::string_view what);
Status WriteAllAt(int fd, ByteSpan bytes, uint64_t offset,
                  std::string_view what);

}  // namespace tracefs
