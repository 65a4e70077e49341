// FileNumbers: what DistinctCount takes of the files behind operations. A file
// that has the inode number of an earlier one is another file, as
// FileIdentities tells.
#pragma once

#include <cstdint>
#include <map>

#include "tracefs/format/record.h"
#include "tracefs/query/file_identities.h"

namespace tracefs::query {

// Used by one thread.
class FileNumbers {
 public:
  // Mounts whose files are followed; of others inode numbers tell.
  static constexpr size_t kMostMounts = 256;

  // Hashes; 0: there is no such file, or nothing tells its inode.
  struct Found {
    uint64_t file = 0;
    uint64_t second = 0;  // the destination of a copy
  };

  // In order of time, every operation: also those that count for nothing.
  Found Of(const format::Record& record);

 private:
  void GoTo(uint32_t mount);

  std::map<uint32_t, FileIdentities> mounts_;
  // The mount that is told of, and its files; null: there is no room.
  uint32_t mount_ = 0;
  FileIdentities* files_ = nullptr;
};

}  // namespace tracefs::query
