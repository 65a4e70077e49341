#include "tracefs/base/biased_lock.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <thread>

#include "tracefs/base/tsan.h"

namespace tracefs {
namespace {

bool MembarrierReady() {
#ifdef TRACEFS_TSAN
  return false;
#else
  static const bool ready =
      ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0,
                0) == 0;
  return ready;
#endif
}

}  // namespace

BiasedLock::BiasedLock() : asymmetric_(MembarrierReady()) {}

void BiasedLock::Revoke() {
  revokers_.lock();
  revoked_.store(1, std::memory_order_seq_cst);
  if (asymmetric_) {
    ::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
  }
  while (inside_.load(std::memory_order_seq_cst) != 0) {
    std::this_thread::yield();
  }
}

void BiasedLock::Restore() {
  revoked_.store(0, std::memory_order_seq_cst);
  revokers_.unlock();
}

void BiasedLock::WaitForRevoker() { std::lock_guard wait(revokers_); }

}  // namespace tracefs
