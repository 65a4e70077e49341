// The two clocks of a trace: monotonic for order and durations, real for the
// reader. Both in nanoseconds; a ClockPair ties them together (FORMAT.md).
#pragma once

#include <cstdint>
#include <ctime>

namespace tracefs {

inline constexpr uint64_t kNsPerUs = 1'000;
inline constexpr uint64_t kNsPerMs = 1'000'000;
inline constexpr uint64_t kNsPerSecond = 1'000'000'000;

inline uint64_t NsOf(const timespec& t) {
  return static_cast<uint64_t>(t.tv_sec) * kNsPerSecond +
         static_cast<uint64_t>(t.tv_nsec);
}

inline uint64_t ClockNs(clockid_t id) {
  timespec t;
  ::clock_gettime(id, &t);
  return NsOf(t);
}

// Both are vDSO calls: about 20 ns and no system call where the clock source
// is the TSC.
inline uint64_t MonotonicNs() { return ClockNs(CLOCK_MONOTONIC); }
inline uint64_t RealNs() { return ClockNs(CLOCK_REALTIME); }

struct ClockPair {
  uint64_t monotonic_ns = 0;
  uint64_t real_ns = 0;

  static ClockPair Now();
  // The real time of a monotonic one, by this pair.
  uint64_t ToReal(uint64_t monotonic) const {
    return real_ns + (monotonic - monotonic_ns);
  }
};

}  // namespace tracefs
