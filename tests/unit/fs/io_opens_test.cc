// When the kernel may keep attributes of a file that may be stored to.
#include "tracefs/fs/io_opens.h"

#include <gtest/gtest.h>

namespace tracefs {
namespace {

constexpr uint64_t kMs = uint64_t{1} << 20;

// Asks `times` times, `gap` apart; how many of them were in a storm.
int Asked(IoOpens& opens, int times, uint64_t gap, uint64_t& now) {
  int in_storm = 0;
  for (int i = 0; i < times; ++i) {
    now += gap;
    if (opens.InStormOfSizes(now)) ++in_storm;
  }
  return in_storm;
}

TEST(StormOfSizes, BeginsAfterDozensOfQuickAsks) {
  IoOpens opens;
  uint64_t now = 1'000 * kMs;
  EXPECT_EQ(Asked(opens, 32, kMs / 4, now), 0);
  EXPECT_EQ(Asked(opens, 1000, kMs / 4, now), 1000);
}

TEST(StormOfSizes, GoesOnWhileTheKernelKeepsAnswersForATick) {
  IoOpens opens;
  uint64_t now = 1'000 * kMs;
  Asked(opens, 40, kMs / 4, now);
  EXPECT_EQ(Asked(opens, 100, 12 * kMs, now), 100);
}

TEST(StormOfSizes, EndsWithAPauseAndHasToBeginAnew) {
  IoOpens opens;
  uint64_t now = 1'000 * kMs;
  Asked(opens, 100, kMs / 4, now);
  EXPECT_EQ(Asked(opens, 1, 30 * kMs, now), 0);
  EXPECT_EQ(Asked(opens, 31, kMs / 4, now), 0);
  EXPECT_EQ(Asked(opens, 1, kMs / 4, now), 1);
}

TEST(StormOfSizes, IsNotWhatAsksNowAndThen) {
  IoOpens opens;
  uint64_t now = 1'000 * kMs;
  EXPECT_EQ(Asked(opens, 10'000, 3 * kMs, now), 0);
}

TEST(StormOfSizes, OutlivesTheEndOfItsCounters) {
  IoOpens opens;
  uint64_t now = (uint64_t{1} << 36) - 20 * kMs;
  EXPECT_EQ(Asked(opens, 200, kMs, now), 168);
}

}  // namespace
}  // namespace tracefs
