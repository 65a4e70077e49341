// How requests travel between the kernel and us: FUSE over io_uring, or
// /dev/fuse.
#pragma once

#include <cstddef>
#include <string>

#include "tracefs/base/status.h"
#include "tracefs/mount/options.h"
#include "tracefs/mount/request_memory.h"
#include "tracefs/mount/transport_trial.h"

namespace tracefs {

// What the choice depends on.
struct TransportFacts {
  bool forwards_locks = false;  // lock requests come to us
  TrialFigures round_trips{};   // what was measured on this host
  MachineSize machine = SizeOfMachine();
};

struct TransportChoice {
  bool uring = false;
  // Requests that a queue of io_uring can hold; the kernel holds back those
  // beyond, whoever sent them.
  int queue_depth = 0;
  // Threads that read requests from /dev/fuse.
  int readers = 32;
  // How many may be made in threads of their own at a time, and how many more
  // may wait for one, with how much data (fs/side_pool.h).
  int max_waiting = 256;
  int max_aside = 4096;
  size_t waiting_bytes = size_t{128} << 20;
  MachineSize machine;  // which these numbers are for
  std::string why;      // for `explain` and the trace header
};

// Why FUSE over io_uring cannot be used on this machine; "" = it can.
std::string UringObstacle();

// kSystem or kInvalid if `wanted` is uring and that is impossible.
Result<TransportChoice> ChooseTransport(
    KernelTransport wanted, const TransportFacts& facts,
    const std::string& obstacle = UringObstacle());

}  // namespace tracefs
