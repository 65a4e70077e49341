// A mount's flags for set-user-id programs, device nodes, programs, symbolic
// links and access times: for root's mounts those of the source's own mount,
// unless -o says otherwise; an ordinary user's are nosuid and nodev, as the
// kernel demands.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tracefs/base/status.h"

namespace tracefs {

struct MountFlags {
  // For libfuse: the given options except words that it does not know, and
  // those from the source.
  std::vector<std::string> fuse_options;
  // For our private copy of the source's mount, where access times are kept:
  // MOUNT_ATTR_… bits to clear and to set (mount_setattr(2)). 0, 0: as it is.
  uint64_t source_clear = 0;
  uint64_t source_set = 0;
  // -o asks for these itself; otherwise they follow from ro.
  bool asks_for_access_times = false;
};

// `given`: of -o. `source_flags`: ST_… bits of the source (statvfs(3)). `root`:
// whoever mounts may have suid and dev.
MountFlags ChooseMountFlags(const std::vector<std::string>& given,
                            unsigned long source_flags, bool root);

// max_read=N among the options; 0: not given. kInvalid if it is not a
// number.
Result<uint32_t> MaxReadOf(const std::vector<std::string>& options);

}  // namespace tracefs
