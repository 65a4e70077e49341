#include "tracefs/base/common_clock.h"

#include <gtest/gtest.h>

namespace tracefs {
namespace {

TEST(CommonClockTest, KeepsThePairUntilTheClockIsOffByAMillisecond) {
  const ClockPair first = {.monotonic_ns = 1000, .real_ns = 50'000'000};
  const ClockPair on_time = {.monotonic_ns = 2000, .real_ns = 50'900'000};
  EXPECT_EQ(SteadyClockPair(first, on_time).monotonic_ns, 1000u);
  const ClockPair set_ahead = {.monotonic_ns = 2000, .real_ns = 60'000'000};
  EXPECT_EQ(SteadyClockPair(first, set_ahead).monotonic_ns, 2000u);
  const ClockPair set_back = {.monotonic_ns = 2000, .real_ns = 40'000'000};
  EXPECT_EQ(SteadyClockPair(first, set_back).real_ns, 40'000'000u);
}

TEST(CommonClockTest, IsTheSameForAllWhoAsk) {
  const ClockPair first = CommonClockPair();
  const ClockPair now = ClockPair::Now();
  for (int i = 0; i < 100; ++i) {
    const ClockPair again = CommonClockPair();
    ASSERT_EQ(again.monotonic_ns, first.monotonic_ns);
    ASSERT_EQ(again.real_ns, first.real_ns);
  }
  const uint64_t predicted = first.ToReal(now.monotonic_ns);
  EXPECT_LE(predicted > now.real_ns ? predicted - now.real_ns
                                    : now.real_ns - predicted,
            kNsPerMs);
}

}  // namespace
}  // namespace tracefs
