// Bytes of a file on their way into a kept folder, or out of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "tracefs/base/status.h"

namespace tracefs::keep {

// Shorter parts are put into memory as a whole, where they are compared.
inline constexpr size_t kMostInMemory = size_t{1} << 20;

// The bytes [begin, begin + bytes.size()) of `fd`, holes being zeros. 0 or an
// errno; ENODATA: the file ends before.
int ReadBytes(int fd, std::span<std::byte> bytes, uint64_t begin);

// Copies `length` bytes of `from` to `to`, which has nothing there yet: holes
// stay holes where both places lie alike in a block. `*checksum`: CRC-32C of
// the bytes. 0 or an errno.
int CopyBytes(int from, uint64_t begin, uint64_t length, int to, uint64_t at,
              uint32_t* checksum);

// CRC-32C of bytes of `fd`, holes being zeros, which are not read. 0 or an
// errno.
int ChecksumOf(int fd, uint64_t begin, uint64_t length, uint32_t* checksum);

}  // namespace tracefs::keep
