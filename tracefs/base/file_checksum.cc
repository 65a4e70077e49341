#include "tracefs/base/file_checksum.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>

#include "tracefs/base/crc32c.h"
#include "tracefs/base/file_extent.h"

namespace tracefs {

std::optional<uint32_t> FileChecksum(int fd) {
  constexpr uint64_t kPiece = uint64_t{256} << 10;
  constexpr uint64_t kEnd = std::numeric_limits<off_t>::max();
  const auto room = std::make_unique_for_overwrite<std::byte[]>(kPiece);
  uint32_t crc = 0;
  uint64_t at = 0;
  while (const std::optional<FileExtent> data = NextData(fd, at, kEnd)) {
    crc = Crc32cZeros(data->begin - at, crc);
    for (at = data->begin; at < data->end;) {
      const ssize_t n =
          ::pread(fd, room.get(), std::min(kPiece, data->end - at),
                  static_cast<off_t>(at));
      if (n < 0) return std::nullopt;
      if (n == 0) return crc;
      crc = Crc32c({room.get(), static_cast<size_t>(n)}, crc);
      at += static_cast<uint64_t>(n);
    }
  }
  struct stat st;
  if (::fstat(fd, &st) != 0) return std::nullopt;
  return Crc32cZeros(std::max<uint64_t>(at, st.st_size) - at, crc);
}

}  // namespace tracefs
