// What orders two accesses though the thread sanitizer cannot see it.
//
// A request that the kernel makes because an earlier one was answered comes
// after it. Over io_uring nothing that the sanitizer intercepts lies between
// the two, and it would report races that cannot be.
#pragma once

#if defined(__SANITIZE_THREAD__)
#define TRACEFS_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TRACEFS_TSAN 1
#endif
#endif

#ifdef TRACEFS_TSAN
extern "C" void __tsan_acquire(void* address);
extern "C" void __tsan_release(void* address);
#endif

namespace tracefs {

// What was done before a TsanRelease of the same address is seen from here on.
inline void TsanAcquire([[maybe_unused]] void* address) {
#ifdef TRACEFS_TSAN
  __tsan_acquire(address);
#endif
}

inline void TsanRelease([[maybe_unused]] void* address) {
#ifdef TRACEFS_TSAN
  __tsan_release(address);
#endif
}

}  // namespace tracefs
