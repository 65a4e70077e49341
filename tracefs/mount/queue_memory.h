// The memory of FUSE over io_uring. The kernel begins to use the rings when
// every processor that the machine may ever have has one, whether or not this
// process may run there: queues cannot be made when they are first used. Their
// memory is taken then, and what bounds it is how many requests they hold.
#pragma once

#include <cstdint>

namespace tracefs {

struct QueueMemory {
  int queues = 0;
  uint64_t bytes_at_most = 0;  // of each, when all its requests are large ones
};

QueueMemory MemoryOfQueues(int depth);

// What the machine has for it: processors, and bytes of memory that this
// process may use (the smallest limit of its cgroups, or all there is).
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
