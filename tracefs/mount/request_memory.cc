#include "tracefs/mount/request_memory.h"

#include <malloc.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace tracefs {
namespace {

// Of a request: what the kernel copies in or out (FileSystem::
// NegotiateFeatures, max_write), and its headers on a page of their own.
constexpr uint64_t kPayloadBytes = 1 << 20;
constexpr uint64_t kHeaderBytes = 4096;
// A thread that serves one has a block of a trace beside it.
constexpr uint64_t kServedBytes = kPayloadBytes + (256 << 10);
// Each request takes up two of the 65,530 pieces of address space.
constexpr int kMostRequests = 16384;
constexpr int kFewest = 16;
constexpr int kMost = 1024;
// Below this much memory the allocator is to keep little.
constexpr uint64_t kScarce = uint64_t{1} << 30;

int AsManyAs(uint64_t bytes, uint64_t of_each, int fewest, int most) {
  const auto least = static_cast<uint64_t>(fewest);
  return static_cast<int>(
      std::clamp(bytes / of_each, least, static_cast<uint64_t>(most)));
}

// The smallest limit in the files `name` of a control group and of those above
// it; none: ~0.
uint64_t LimitIn(const std::string& hierarchy, std::string group,
                 const char* name) {
  uint64_t least = ~uint64_t{0};
  for (;;) {
    std::ifstream limit(hierarchy + group + "/" + name);
    uint64_t bytes = 0;
    if (limit >> bytes) least = std::min(least, bytes);  // not of "max"
    if (group.empty()) return least;
    group.erase(group.rfind('/'));
  }
}

// Of this process, in either version; none: ~0.
uint64_t CgroupLimit() {
  uint64_t least = ~uint64_t{0};
  std::ifstream in("/proc/self/cgroup");
  std::string line;
  while (std::getline(in, line)) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (group.empty() || group.front() != '/') continue;
    if (controllers.empty()) {
      least = std::min(least, LimitIn("/sys/fs/cgroup", group, "memory.max"));
    } else if (controllers == "memory") {
      least = std::min(least, LimitIn("/sys/fs/cgroup/memory", group,
                                      "memory.limit_in_bytes"));
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
  const uint64_t limit = CgroupLimit();
  machine.limited = limit < machine.memory_bytes;
  if (machine.limited) machine.memory_bytes = limit;
  return machine;
}

int QueueDepth(const MachineSize& machine) {
  const auto processors = static_cast<uint64_t>(machine.processors);
  const uint64_t by_memory =
      machine.memory_bytes / 8 / processors / (kPayloadBytes + kHeaderBytes);
  const auto by_pieces = static_cast<uint64_t>(kMostRequests) / processors;
  return AsManyAs(std::min(by_memory, by_pieces), 1, kFewest, kMost);
}

RequestLimits RequestLimitsIn(uint64_t memory_bytes) {
  RequestLimits limits;
  limits.readers = AsManyAs(memory_bytes / 8, kPayloadBytes, 4, limits.readers);
  limits.aside_at_work =
      AsManyAs(memory_bytes / 4, kServedBytes, 8, limits.aside_at_work);
  limits.waiting_bytes =
      std::min<uint64_t>(memory_bytes / 16, limits.waiting_bytes);
  return limits;
}

void KeepLittleMemory(const MachineSize& machine) {
  if (machine.memory_bytes >= kScarce) return;
  ::mallopt(M_ARENA_MAX, 2);
  ::mallopt(M_MMAP_THRESHOLD, 256 << 10);
}

}  // namespace tracefs
