// How requests travel between the kernel and us: FUSE over io_uring, or
// /dev/fuse.
#pragma once

#include <string>

#include "tracefs/base/status.h"
#include "tracefs/mount/options.h"

namespace tracefs {

// What the choice depends on.
struct TransportFacts {
  bool forwards_locks = false;  // lock requests come to us
  bool traces_data = false;     // reads or writes may be recorded
  bool in_memory = false;  // the backing file system never waits for a disk
};

struct TransportChoice {
  bool uring = false;
  // Requests that a queue of io_uring can hold; the kernel keeps those beyond
  // back, whosever they are.
  int queue_depth = 0;
  // How many of them may wait for another process (fs/side_pool.h).
  int max_waiting = 192;
  std::string why;  // for `explain` and the trace header
};

// Why FUSE over io_uring cannot be used on this machine; "" = it can.
std::string UringObstacle();

// kSystem or kInvalid where `wanted` is uring and cannot be had.
Result<TransportChoice> ChooseTransport(
    KernelTransport wanted, const TransportFacts& facts,
    const std::string& obstacle = UringObstacle());

// Whether the file system of `fd` lives in memory (tmpfs, ramfs).
bool IsInMemory(int fd);

}  // namespace tracefs
