#include "tracefs/fs/backing_files.h"

#include <sys/ioctl.h>

namespace tracefs {
namespace {

// linux/include/uapi/linux/fuse.h; libfuse keeps its copy to itself, and the
// installed headers of Debian 12 are too old.
struct BackingMap {
  int32_t fd;
  uint32_t flags;
  uint64_t padding;
};
constexpr unsigned long kBackingOpen = _IOW(229, 1, BackingMap);
constexpr unsigned long kBackingClose = _IOW(229, 2, uint32_t);

}  // namespace

int32_t BackingFiles::Open(int fd) const {
  const BackingMap map = {fd, 0, 0};
  const int id = ::ioctl(device_, kBackingOpen, &map);
  return id > 0 ? id : 0;
}

void BackingFiles::Close(int32_t id) const {
  const auto number = static_cast<uint32_t>(id);
  ::ioctl(device_, kBackingClose, &number);
}

}  // namespace tracefs
