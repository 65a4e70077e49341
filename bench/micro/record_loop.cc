// Records a given number of operations at FULL verbosity and ends: to be run
// under callgrind with two numbers, whose difference is the instructions of the
// hot path per event, the same on every machine with the same compiler
// (bench/run --only instructions).
//
//   record_loop EVENTS
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "bench/micro/record_world.h"
#include "drivers/assembly/stream.h"

int main(int argc, char** argv) {
  using namespace tracefs;  // NOLINT: a main
  const unsigned long events =
      argc == 2 ? std::strtoul(argv[1], nullptr, 10) : 0;
  if (events == 0) {
    std::fprintf(stderr, "Usage: record_loop EVENTS\n");
    return 2;
  }
  World world;
  // No flush by time: how often it came would change the count.
  Pipeline pipeline(std::chrono::hours(1));
  const Status status =
      AddRecorder(pipeline, true, MakeStream(StreamFlagBits("STR_ALL")));
  if (!status.ok()) {
    std::fprintf(stderr, "record_loop: %s\n", status.message().c_str());
    return 3;
  }
  const auto tid = static_cast<uint32_t>(::syscall(SYS_gettid));
  for (unsigned long i = 0; i < events; ++i) {
    HandleOne(pipeline, world, i, tid);
  }
  return 0;
}
