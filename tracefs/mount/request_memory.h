// The memory of requests that are under way, and how many there may be in that
// of this process: a control group of 64 MiB holds a mount, too.
//
// FUSE over io_uring: the kernel uses the rings only once every possible
// processor has one, whether or not this process may run there: queues cannot
// be made on first use. Their memory, however, is taken on first use, and is
// bounded by how many requests they hold.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tracefs {

struct QueueMemory {
  int queues = 0;
  uint64_t bytes_at_most = 0;  // of each, when all its requests are large ones
};

QueueMemory MemoryOfQueues(int depth);

// The machine's resources: processors, and bytes of memory that this process
// may use (the smallest limit of its control groups, or everything).
struct MachineSize {
  int processors = 1;
  uint64_t memory_bytes = 0;
  // Whether that is the limit of a control group.
  bool limited = false;
};
MachineSize SizeOfMachine();

// How many requests a queue can hold: 16 to 1,024, as many as all queues
// together may hold in an eighth of the memory and in the pieces of address
// space that Linux gives a process.
int QueueDepth(const MachineSize& machine);

struct RequestLimits {
  // Threads that read requests from /dev/fuse: 4 to 32, an eighth of the memory
  // if all of them have a large one.
  int readers = 32;
  // Requests that go on in threads of their own (fs/side_pool.h): 8 to 256, a
  // quarter of the memory.
  int aside_at_work = 256;
  // The data of those that wait for such a thread: a sixteenth of the memory,
  // 128 MiB at most.
  size_t waiting_bytes = size_t{128} << 20;
};
RequestLimits RequestLimitsIn(uint64_t memory_bytes);

// Where memory is scarce: has the allocator give back what requests leave,
// rather than keep up to 2 MiB for each of eight arenas a processor. Once, and
// before there are other threads.
void KeepLittleMemory(const MachineSize& machine);

}  // namespace tracefs
