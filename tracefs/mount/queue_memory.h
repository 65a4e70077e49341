// The memory of FUSE over io_uring. The kernel uses the rings only once every
// possible processor has one, whether or not this process may run there: queues
// cannot be made on first use. Their memory, however, is taken on first use,
// and is bounded by how many requests they hold.
#pragma once

#include <cstdint>

namespace tracefs {

struct QueueMemory {
  int queues = 0;
  uint64_t bytes_at_most = 0;  // of each, when all its requests are large ones
};

QueueMemory MemoryOfQueues(int depth);

// The machine's resources: processors, and bytes of memory that this process
// may use (the smallest limit of its cgroups, or everything).
struct MachineSize {
  int processors = 1;
  uint64_t memory_bytes = 0;
};
MachineSize SizeOfMachine();

// How many requests a queue can hold: 16 to 1,024, as many as all queues
// together may hold in an eighth of the memory and in the pieces of address
// space that Linux gives a process.
int QueueDepth(const MachineSize& machine);

}  // namespace tracefs
