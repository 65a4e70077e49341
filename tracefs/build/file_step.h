// FileStep: one operation on a file, as far as it matters for who made what
// from what.
#pragma once

#include <cstdint>
#include <string_view>

#include "tracefs/event/op.h"
#include "tracefs/event/process_record.h"

namespace tracefs::build {

// Views are the caller's. Paths are absolute where it is known where the mount
// was, else they begin at the mount.
struct FileStep {
  uint64_t time_ns = 0;  // begin, monotonic
  uint64_t duration_ns = 0;
  ProcessKey process;  // the caller; pid 0: not known
  uint32_t ppid = 0;
  std::string_view comm;
  Op op{};
  bool inferred = false;  // the caller is the process that opened the file
  uint32_t error = 0;     // an errno; 0 = done
  uint32_t flags = 0;     // of open, create, tmpfile, rename
  std::string_view path;
  std::string_view path2;   // of rename, link and copies; of a copy in an older
                            // trace empty (StepPathFinder)
  std::string_view target;  // of symlink
  uint64_t inode = 0;
  uint64_t inode_out = 0;  // of a copy: of the file that is written
  uint32_t mode = 0;       // st_mode; only the type may be known; 0 = not known
  uint64_t size = 0;       // of the file
  uint64_t mtime_ns = 0;   // of the file, since the epoch; 0 = not known
  uint64_t offset = 0;
  uint64_t offset_out = 0;      // of a copy: in the file that is written
  uint64_t bytes = 0;           // read or written; of a copy both
  uint64_t fh = 0;              // file handle; 0 = none
  uint64_t fh_out = 0;          // of a copy: the one that is written
  bool has_attributes = false;  // mode, size and mtime_ns are those it has now
  bool resizes = false;         // a setattr of the size
};

}  // namespace tracefs::build
