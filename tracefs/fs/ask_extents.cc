#include "tracefs/fs/ask_extents.h"

#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>

#include "tracefs/event/extents.h"

namespace tracefs {
namespace {

// One request and its answer.
struct Map {
  alignas(fiemap) std::array<
      std::byte, sizeof(fiemap) + kMostExtents * sizeof(fiemap_extent)> bytes;
  fiemap& head() { return *reinterpret_cast<fiemap*>(bytes.data()); }
};

// The part of an extent that lies in the range. Compressed data has no place
// for each of its bytes, and stays whole.
Extent Part(const fiemap_extent& told, const WrittenRange& range) {
  Extent extent = {told.fe_logical, told.fe_physical, told.fe_length,
                   told.fe_flags};
  if ((extent.flags & FIEMAP_EXTENT_ENCODED) != 0) return extent;
  if (extent.logical < range.begin) {
    const uint64_t before =
        std::min(range.begin - extent.logical, extent.length);
    extent.logical += before;
    extent.length -= before;
    if (extent.has_place()) extent.physical += before;
  }
  if (extent.logical < range.end) {
    extent.length = std::min(extent.length, range.end - extent.logical);
  }
  return extent;
}

}  // namespace

int AskForExtents(int fd, const WrittenRanges& ranges, std::string* list,
                  uint64_t* left_out) {
  thread_local Map map;
  size_t left = kMostExtents;
  for (const WrittenRange& range : ranges.ranges()) {
    if (left == 0) {
      *left_out += range.end - range.begin;
      continue;
    }
    fiemap& asked = map.head();
    asked.fm_start = range.begin;
    asked.fm_length = range.end - range.begin;
    asked.fm_flags = 0;
    asked.fm_mapped_extents = 0;
    asked.fm_extent_count = static_cast<uint32_t>(left);
    if (::ioctl(fd, FS_IOC_FIEMAP, &asked) != 0) {
      const int error = errno;
      list->clear();
      *left_out = 0;
      return error;
    }
    const size_t told = std::min<size_t>(asked.fm_mapped_extents, left);
    uint64_t end = range.begin;
    for (size_t i = 0; i < told; ++i) {
      const Extent part = Part(asked.fm_extents[i], range);
      AppendExtent(part, list);
      end = std::max(end, part.logical + part.length);
    }
    const bool last = told == 0 || (asked.fm_extents[told - 1].fe_flags &
                                    FIEMAP_EXTENT_LAST) != 0;
    if (told == left && !last && end < range.end) *left_out += range.end - end;
    left -= told;
  }
  return 0;
}

}  // namespace tracefs
