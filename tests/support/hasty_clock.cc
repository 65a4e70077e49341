// Loaded before a command: each look at the monotonic clock finds it half a
// second on, however fast the machine is. So a test sees what is said of long
// work without long work.
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

namespace {

constexpr long kHalfSecondNs = 500'000'000;

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  static std::atomic<long> looks = 2000;  // no clock begins at 0
  if (clock != CLOCK_MONOTONIC) {
    return static_cast<int>(::syscall(SYS_clock_gettime, clock, time));
  }
  const long look = looks.fetch_add(1, std::memory_order_relaxed);
  *time = {look / 2, look % 2 * kHalfSecondNs};
  return 0;
}
