#include "tracefs/mount/queue_memory.h"

#include <sys/sysinfo.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string>

namespace tracefs {
namespace {

// Of a request: what the kernel copies in or out (FileSystem::
// NegotiateFeatures, max_write), and its headers on a page of their own.
constexpr uint64_t kPayloadBytes = 1 << 20;
constexpr uint64_t kHeaderBytes = 4096;
// Each request takes up two of the 65,530 pieces of address space.
constexpr int kMostRequests = 16384;
constexpr int kFewest = 16;
constexpr int kMost = 1024;

// The limit of the process's own cgroup in either version; none: ~0.
uint64_t CgroupLimit() {
  uint64_t least = ~uint64_t{0};
  std::ifstream in("/proc/self/cgroup");
  std::string line;
  while (std::getline(in, line)) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    const std::array<std::string, 2> files =
        controllers.empty()
            ? std::array{"/sys/fs/cgroup" + path + "/memory.max",
                         std::string("/sys/fs/cgroup/memory.max")}
            : std::array{
                  "/sys/fs/cgroup/memory" + path + "/memory.limit_in_bytes",
                  std::string("/sys/fs/cgroup/memory/memory.limit_in_bytes")};
    if (!controllers.empty() && controllers != "memory") continue;
    for (const std::string& file : files) {
      std::ifstream limit(file);
      uint64_t bytes = 0;
      if (limit >> bytes) least = std::min(least, bytes);  // not of "max"
    }
  }
  return least;
}

}  // namespace

QueueMemory MemoryOfQueues(int depth) {
  return {std::max(::get_nprocs_conf(), 1),
          static_cast<uint64_t>(depth) * (kPayloadBytes + kHeaderBytes)};
}

MachineSize SizeOfMachine() {
  MachineSize machine;
  machine.processors = std::max(::get_nprocs_conf(), 1);
  struct sysinfo info {};
  if (::sysinfo(&info) == 0) {
    machine.memory_bytes = uint64_t{info.totalram} * info.mem_unit;
  }
  machine.memory_bytes = std::min(machine.memory_bytes, CgroupLimit());
  return machine;
}

int QueueDepth(const MachineSize& machine) {
  const auto processors = static_cast<uint64_t>(machine.processors);
  const uint64_t by_memory =
      machine.memory_bytes / 8 / processors / (kPayloadBytes + kHeaderBytes);
  const auto by_pieces = static_cast<uint64_t>(kMostRequests) / processors;
  return static_cast<int>(std::clamp(std::min(by_memory, by_pieces),
                                     uint64_t{kFewest}, uint64_t{kMost}));
}

}  // namespace tracefs
