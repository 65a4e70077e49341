#include "tracefs/command/progress.h"

#include <gtest/gtest.h>

#include "tracefs/base/clock.h"

namespace tracefs {
namespace {

constexpr uint64_t kMiB = 1 << 20;

TEST(ProgressTest, HowFarAndHowLongItWillTake) {
  EXPECT_EQ(ProgressText(kMiB, 4 * kMiB, 2 * kNsPerSecond),
            "  25 % of 4.19 MB, 6 s left");
  EXPECT_EQ(ProgressText(4 * kMiB, 4 * kMiB, 2 * kNsPerSecond),
            " 100 % of 4.19 MB, 0 s left");
}

TEST(ProgressTest, LongTimesAreInMinutesAndHours) {
  EXPECT_EQ(ProgressText(kMiB, 100 * kMiB, kNsPerSecond),
            "   1 % of 104 MB, 99 s left");
  EXPECT_EQ(ProgressText(kMiB, 100 * kMiB, 2 * kNsPerSecond),
            "   1 % of 104 MB, 3 min left");
  EXPECT_EQ(ProgressText(kMiB, 100 * kMiB, 3600 * kNsPerSecond),
            "   1 % of 104 MB, 99 h left");
}

TEST(ProgressTest, WhatCannotBeToldIsLeftOut) {
  EXPECT_EQ(ProgressText(0, kMiB, 5 * kNsPerSecond), "   0 % of 1.04 MB");
  EXPECT_EQ(ProgressText(kMiB / 2, kMiB, kNsPerSecond / 2),
            "  50 % of 1.04 MB");
  EXPECT_EQ(ProgressText(0, 0, 0), " 100 % of 0 B");
}

TEST(ProgressTest, AFileThatGrowsMeanwhileIsNeverMoreThanAll) {
  EXPECT_EQ(ProgressText(2 * kMiB, kMiB, kNsPerSecond),
            " 100 % of 1.04 MB, 0 s left");
}

}  // namespace
}  // namespace tracefs
