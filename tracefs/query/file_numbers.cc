#include "tracefs/query/file_numbers.h"

#include <algorithm>

#include "tracefs/format/block_decoder.h"
#include "tracefs/query/analysis.h"
#include "tracefs/query/distinct_count.h"

namespace tracefs::query {

FileNumbers::Found FileNumbers::Of(const format::Record& record) {
  if (!HasRun(record)) return {};
  const Event& event = record.event;
  const uint32_t mount = OriginOf(record).mount;
  FileIdentities::Touched touched;
  auto at = mounts_.find(mount);
  if (at == mounts_.end() && mounts_.size() < kMostMounts) {
    at = mounts_.try_emplace(mount, [](FileIdentities::Number) {}).first;
  }
  if (at != mounts_.end()) {
    PathBuffer buffer, buffer2;
    touched = at->second.Take(event, format::PathOf(record, buffer),
                              format::NewPathOf(record, buffer2));
  }
  const auto hash = [&](Field inode, FileIdentities::Number number) {
    // Numbers of files have the highest bit, which no inode number has.
    constexpr uint64_t kFollowed = uint64_t{1} << 63;
    if (!event.Has(inode)) return uint64_t{0};
    const uint64_t what =
        number == FileIdentities::kNone ? event.Get(inode) : number | kFollowed;
    return std::max<uint64_t>(DistinctNumber(mount, what), 1);
  };
  return {.file = hash(Field::kInode, touched.file),
          .second = hash(Field::kInodeOut, touched.second)};
}

}  // namespace tracefs::query
