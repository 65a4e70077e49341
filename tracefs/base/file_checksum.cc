#include "tracefs/base/file_checksum.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <limits>
#include <memory>

#include "tracefs/base/crc32c.h"

namespace tracefs {
namespace {

constexpr size_t kPiece = size_t{256} << 10;

// Where the next data begin, from `at` on; the end of the file if there are
// none.
off_t NextData(int fd, off_t at) {
  const off_t data = ::lseek(fd, at, SEEK_DATA);
  if (data >= 0) return data;
  if (errno != ENXIO) return at;  // it does not tell holes: all are data
  struct stat st;
  return ::fstat(fd, &st) != 0 ? at : std::max<off_t>(at, st.st_size);
}

}  // namespace

std::optional<uint32_t> FileChecksum(int fd) {
  const auto room = std::make_unique_for_overwrite<std::byte[]>(kPiece);
  uint32_t crc = 0;
  for (off_t at = 0;;) {
    const off_t data = NextData(fd, at);
    crc = Crc32cZeros(static_cast<uint64_t>(data - at), crc);
    at = data;
    off_t hole = ::lseek(fd, at, SEEK_HOLE);
    if (hole <= at) hole = std::numeric_limits<off_t>::max();
    while (at < hole) {
      const auto most = static_cast<size_t>(
          std::min<off_t>(static_cast<off_t>(kPiece), hole - at));
      const ssize_t n = ::pread(fd, room.get(), most, at);
      if (n < 0) return std::nullopt;
      if (n == 0) return crc;
      crc = Crc32c({room.get(), static_cast<size_t>(n)}, crc);
      at += n;
    }
  }
}

}  // namespace tracefs
