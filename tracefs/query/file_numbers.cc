#include "tracefs/query/file_numbers.h"

#include <algorithm>

#include "tracefs/query/analysis.h"
#include "tracefs/query/distinct_count.h"

namespace tracefs::query {

FileNumbers::Found FileNumbers::Of(const format::Record& record) {
  const Event& event = record.event;
  if (!HasRun(record)) return {};
  // It changes nothing, and nothing tells of which file it was.
  if (Failed(event) && !event.Has(Field::kInode)) return {};
  const uint32_t mount = OriginOf(record).mount;
  FileIdentities::Touched touched;
  FileIdentities* const files =
      mounts_.Of(mount, [](FileIdentities::Number) {});
  if (files != nullptr) {
    format::RecordPaths paths(record);
    touched = files->Take(event, paths);
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
