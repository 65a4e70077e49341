#include "tracefs/keep/kept_source.h"

#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

#include "tracefs/base/bytes.h"
#include "tracefs/base/crc32c.h"
#include "tracefs/base/file_extent.h"
#include "tracefs/base/file_io.h"

namespace tracefs::keep {
namespace {

constexpr size_t kPiece = size_t{256} << 10;

using UsePiece = std::function<int(ByteSpan bytes, uint64_t offset)>;

// Calls `use` for the data of [begin, end), and works out the checksum of all.
int ForEachPiece(int fd, uint64_t begin, uint64_t end, uint32_t* checksum,
                 const UsePiece& use) {
  thread_local std::vector<std::byte> room(kPiece);
  uint64_t at = begin;
  uint32_t crc = 0;
  while (const std::optional<FileExtent> data = NextData(fd, at, end)) {
    crc = Crc32cZeros(data->begin - at, crc);
    for (at = data->begin; at < data->end;) {
      const std::span<std::byte> piece(
          room.data(), std::min<uint64_t>(kPiece, data->end - at));
      if (const int error = ReadBytes(fd, piece, at); error != 0) return error;
      crc = Crc32c(piece, crc);
      if (const int error = use(piece, at); error != 0) return error;
      at += piece.size();
    }
  }
  *checksum = Crc32cZeros(end - at, crc);
  return 0;
}

}  // namespace

int ReadBytes(int fd, std::span<std::byte> bytes, uint64_t begin) {
  const ssize_t n = ReadAt(fd, bytes, begin);
  if (n < 0) return errno;
  return n == static_cast<ssize_t>(bytes.size()) ? 0 : ENODATA;
}

int CopyBytes(int from, uint64_t begin, uint64_t length, int to, uint64_t at,
              uint32_t* checksum) {
  return ForEachPiece(from, begin, begin + length, checksum,
                      [&](ByteSpan bytes, uint64_t offset) {
                        const Status written = WriteAllAt(
                            to, bytes, at + (offset - begin), "kept bytes");
                        return written.ok() ? 0 : written.error();
                      });
}

int ChecksumOf(int fd, uint64_t begin, uint64_t length, uint32_t* checksum) {
  return ForEachPiece(fd, begin, begin + length, checksum,
                      [](ByteSpan, uint64_t) { return 0; });
}

}  // namespace tracefs::keep
