#include "tracefs/mount/transport.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <utility>

#include "tracefs/mount/queue_memory.h"

namespace tracefs {

std::string UringObstacle() {
#if TRACEFS_HAVE_FUSE_URING
  std::ifstream in("/sys/module/fuse/parameters/enable_uring");
  char value = '-';
  in >> value;
  if (value == 'Y') return "";
  if (value == 'N') {
    return "the kernel's switch is off: write Y to "
           "/sys/module/fuse/parameters/enable_uring, or run tracefs-mount "
           "--doctor --fix";
  }
  return "the kernel lacks it (Linux 6.14 or newer has it)";
#else
  return "libfuse " TRACEFS_LIBFUSE_VERSION
         " lacks it: run scripts/setup and build again";
#endif
}

namespace {

TransportChoice Uring(std::string why) {
  TransportChoice choice;
  choice.uring = true;
  choice.why = std::move(why);
  choice.queue_depth = QueueDepth(SizeOfMachine());
  // A quarter of each queue stays free, even if all requests come by the same
  // one.
  const int most = choice.queue_depth * 3 / 4;
  choice.max_waiting = std::min(most * 2 / 3, choice.max_waiting);
  choice.max_aside = most - choice.max_waiting;
  return choice;
}

TransportChoice Device(std::string why) {
  TransportChoice choice;
  choice.why = std::move(why);
  return choice;
}

}  // namespace

Result<TransportChoice> ChooseTransport(KernelTransport wanted,
                                        const TransportFacts& facts,
                                        const std::string& obstacle) {
  if (wanted == KernelTransport::kDev) return Device("as asked for");
  // A waiter for a lock is answered by the thread that frees it, which this
  // libfuse does not allow over io_uring (libfuse issue 1443).
  constexpr char kLocks[] = "a filter names lock operations";
  if (wanted == KernelTransport::kUring) {
    if (!obstacle.empty()) {
      return Status::System(EOPNOTSUPP, "--transport uring: " + obstacle);
    }
    if (facts.forwards_locks) {
      return Status::Invalid(std::string("--transport uring: ") + kLocks +
                             ", which needs --transport dev");
    }
    return Uring("as asked for");
  }
  if (!obstacle.empty()) return Device(obstacle);
  if (facts.forwards_locks) return Device(kLocks);
  const TrialFigures& trips = facts.round_trips;
  if (trips.uring_loses()) {
    return Device("io_uring is the slower one here: " + trips.ToString());
  }
  const std::string figures = trips.ToString();
  return Uring("fewer switches for each request" +
               (figures.empty() ? "" : ": " + figures));
}

}  // namespace tracefs
