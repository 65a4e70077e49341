#include "tracefs/query/file_numbers.h"

#include <algorithm>

#include "tracefs/query/analysis.h"
#include "tracefs/query/distinct_count.h"

namespace tracefs::query {

void FileNumbers::GoTo(uint32_t mount) {
  if (files_ != nullptr && mount == mount_) return;
  auto at = mounts_.find(mount);
  if (at == mounts_.end() && mounts_.size() < kMostMounts) {
    at = mounts_.try_emplace(mount, [](FileIdentities::Number) {}).first;
  }
  mount_ = mount;
  files_ = at == mounts_.end() ? nullptr : &at->second;
}

FileNumbers::Found FileNumbers::Of(const format::Record& record) {
  const Event& event = record.event;
  if (!HasRun(record)) return {};
  // It changes nothing, and nothing tells of which file it was.
  if (Failed(event) && !event.Has(Field::kInode)) return {};
  const uint32_t mount = OriginOf(record).mount;
  FileIdentities::Touched touched;
  GoTo(mount);
  if (files_ != nullptr) {
    format::RecordPaths paths(record);
    touched = files_->Take(event, paths);
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
