// Loaded before a daemon that strace traces: each of its calls is stopped twice
// on the way, which takes as long as if the store below made it wait
// (tracefs/fs/preemption.h). So the daemon is told what is true then, that its
// threads lost their processors, and goes on as it does untraced.
#include <sys/resource.h>

extern "C" int getrusage(__rusage_who_t /*who*/, rusage* usage) noexcept {
  thread_local long lost = 0;
  *usage = {};
  usage->ru_nivcsw = ++lost;
  return 0;
}
