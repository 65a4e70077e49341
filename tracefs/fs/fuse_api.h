// libfuse's low-level interface, in the version this build has.
#pragma once

#define FUSE_USE_VERSION TRACEFS_FUSE_USE_VERSION
#include <fuse_lowlevel.h>

// 3.17: feature flags over 32 bits, no_interrupt, passthrough. 3.18: statx,
// kill_suidgid, FUSE over io_uring.
#define TRACEFS_FUSE_AT_LEAST(minor) \
  (FUSE_VERSION >= FUSE_MAKE_VERSION(3, minor))
