#include "tracefs/mount/transport.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <utility>

#include "tracefs/text/units.h"

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

// Over either.
TransportChoice Within(const MachineSize& machine, std::string why) {
  const RequestLimits limits = RequestLimitsIn(machine.memory_bytes);
  TransportChoice choice;
  choice.machine = machine;
  choice.why = std::move(why);
  choice.readers = limits.readers;
  choice.max_waiting = limits.aside_at_work;
  choice.waiting_bytes = limits.waiting_bytes;
  return choice;
}

TransportChoice Uring(const MachineSize& machine, std::string why) {
  TransportChoice choice = Within(machine, std::move(why));
  choice.uring = true;
  // They serve the first requests and FORGETs: no more than that needs, because
  // FORGETs should accumulate (tracefs/fs/lookup.cc).
  choice.readers = 2;
  choice.queue_depth = QueueDepth(machine);
  // A quarter of each queue stays free, even if all requests come by the same
  // one.
  const int most = choice.queue_depth * 3 / 4;
  choice.max_waiting = std::min(most * 2 / 3, choice.max_waiting);
  choice.max_aside = most - choice.max_waiting;
  return choice;
}

}  // namespace

Result<TransportChoice> ChooseTransport(KernelTransport wanted,
                                        const TransportFacts& facts,
                                        const std::string& obstacle) {
  const MachineSize& machine = facts.machine;
  if (wanted == KernelTransport::kDev) return Within(machine, "as asked for");
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
    return Uring(machine, "as asked for");
  }
  if (!obstacle.empty()) return Within(machine, obstacle);
  if (facts.forwards_locks) return Within(machine, kLocks);
  const QueueMemory queues = MemoryOfQueues(QueueDepth(machine));
  const uint64_t together =
      queues.bytes_at_most * static_cast<uint64_t>(queues.queues);
  if (together > machine.memory_bytes / 4) {
    return Within(machine, "queues of io_uring may come to take " +
                               SizeText(together) + " of " +
                               SizeText(machine.memory_bytes) + " of memory");
  }
  const TrialFigures& trips = facts.round_trips;
  if (trips.uring_loses()) {
    return Within(machine,
                  "io_uring is the slower one here: " + trips.ToString());
  }
  const std::string figures = trips.ToString();
  return Uring(machine, "fewer switches for each request" +
                            (figures.empty() ? "" : ": " + figures));
}

}  // namespace tracefs
