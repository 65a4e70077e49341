#include "tracefs/base/file_extent.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace tracefs {

std::optional<FileExtent> NextData(int fd, uint64_t at, uint64_t end) {
  const off_t data = ::lseek(fd, static_cast<off_t>(at), SEEK_DATA);
  if (data < 0 && errno == ENXIO) return std::nullopt;
  if (data >= 0) at = static_cast<uint64_t>(data);
  if (at >= end) return std::nullopt;
  const off_t hole = ::lseek(fd, static_cast<off_t>(at), SEEK_HOLE);
  if (hole < 0 || static_cast<uint64_t>(hole) <= at) return FileExtent{at, end};
  return FileExtent{at, std::min(end, static_cast<uint64_t>(hole))};
}

}  // namespace tracefs
