// The CRC-32C of a file's contents.
#pragma once

#include <cstdint>
#include <optional>

namespace tracefs {

// `fd`: open for reading. Holes are not read: a file of 2^61 bytes that takes
// no room costs nothing. Nothing, and errno, if it cannot be read. Concurrent
// changes may or may not be included.
std::optional<uint32_t> FileChecksum(int fd);

}  // namespace tracefs
