// libfuse's low-level interface, in the version this build has.
#pragma once

#define FUSE_USE_VERSION TRACEFS_FUSE_USE_VERSION
#include <fuse_lowlevel.h>

// 3.17: feature flags over 32 bits, no_interrupt, passthrough. 3.18: statx,
// kill_suidgid, FUSE over io_uring.
#define TRACEFS_FUSE_AT_LEAST(minor) \
  (FUSE_VERSION >= FUSE_MAKE_VERSION(3, minor))

namespace tracefs {

// Whether a write or a truncating open must clear set-id bits, as the kernel
// says for callers who may not keep them.
inline bool KillsSetId([[maybe_unused]] const fuse_file_info& fi) {
#if TRACEFS_FUSE_AT_LEAST(18)
  return fi.kill_suidgid != 0;
#else
  return false;
#endif
}

}  // namespace tracefs
