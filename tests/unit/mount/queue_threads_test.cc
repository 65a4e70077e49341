// When a mount measures again how its queue threads do best.
#include "tracefs/mount/queue_threads.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace tracefs {
namespace {

RunDelay Waits(uint64_t us_each, uint64_t runs = 1000) {
  return {us_each * 1000 * runs, runs};
}

TEST(LoadChangeTest, TheSameLoadIsNoChange) {
  LoadChange change;
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(change.Note(Waits(100)));
}

TEST(LoadChangeTest, WhatLastsForTwoIntervalsIsAChangeOnce) {
  LoadChange change;
  EXPECT_FALSE(change.Note(Waits(50)));
  EXPECT_FALSE(change.Note(Waits(900)));
  EXPECT_TRUE(change.Note(Waits(900)));
  EXPECT_FALSE(change.Note(Waits(900)));
  EXPECT_FALSE(change.Note(Waits(900)));
  // And back.
  EXPECT_FALSE(change.Note(Waits(50)));
  EXPECT_TRUE(change.Note(Waits(50)));
}

TEST(LoadChangeTest, AMomentIsNoChange) {
  LoadChange change;
  EXPECT_FALSE(change.Note(Waits(50)));
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(change.Note(Waits(900)));
    EXPECT_FALSE(change.Note(Waits(50)));
  }
}

TEST(LoadChangeTest, FewRequestsAndShortWaitsTellNothing) {
  LoadChange change;
  EXPECT_FALSE(change.Note(Waits(1)));
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(change.Note(Waits(15)));
    EXPECT_FALSE(change.Note(Waits(5000, 10)));
    EXPECT_FALSE(change.Note({0, 0}));
  }
}

TEST(QueueThreadsTest, OverTheDeviceNothingIsMeasured) {
  const QueueThreads threads(std::nullopt, /*rings=*/false);
  EXPECT_EQ(threads.policy(), ThreadPolicy::kNormal);
  EXPECT_NE(threads.Why().find("/dev/fuse"), std::string::npos);
}

TEST(QueueThreadsTest, WhatWasMeasuredIsTold) {
  const QueueThreads threads(std::nullopt, /*rings=*/true);
  EXPECT_NE(threads.Why().find("round trips: "), std::string::npos)
      << threads.Why();
  EXPECT_FALSE(threads.Choice().empty());
  EXPECT_TRUE(threads.refusal().empty());
}

}  // namespace
}  // namespace tracefs
