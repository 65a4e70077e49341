// FileNumbers: what DistinctCount takes of the files behind operations. A file
// that has the inode number of an earlier one is another file, as
// FileIdentities tells.
#pragma once

#include <cstdint>

#include "tracefs/format/record.h"
#include "tracefs/query/by_mount.h"
#include "tracefs/query/file_identities.h"

namespace tracefs::query {

// Used by one thread.
class FileNumbers {
 public:
  // Hashes; 0: there is no such file, or nothing tells its inode.
  struct Found {
    uint64_t file = 0;
    uint64_t second = 0;  // the destination of a copy
  };

  // In order of time, every operation: also those that count for nothing. Of
  // mounts there is no room for inode numbers tell.
  Found Of(const format::Record& record);

 private:
  ByMount<FileIdentities> mounts_;
};

}  // namespace tracefs::query
