#include "tracefs/pipeline/loss.h"

#include <gtest/gtest.h>

namespace tracefs {
namespace {

TEST(LossCounterTest, AddsUpByReasonAndWidensTheTimeRange) {
  LossCounter losses;
  losses.Add(LossReason::kOutputError, 3, 100, 200);
  losses.Add(LossReason::kOutputError, 4, 50, 60);
  losses.Add(LossReason::kTooLarge, 1, 70, 70);
  EXPECT_EQ(losses.Total(LossReason::kTooLarge), 1u);
  EXPECT_EQ(losses.Total(LossReason::kOutputError), 7u);
  const auto loss = losses.TakeUnreported();
  ASSERT_TRUE(loss.has_value());
  EXPECT_EQ(loss->reason, LossReason::kOutputError);
  EXPECT_EQ(loss->count, 7u);
  EXPECT_EQ(loss->first_ns, 50u);
  EXPECT_EQ(loss->last_ns, 200u);
}

TEST(LossCounterTest, TakenOnceUnlessReturned) {
  LossCounter losses;
  losses.Add(LossReason::kTooLarge, 2, 10, 20);
  const auto loss = losses.TakeUnreported();
  ASSERT_TRUE(loss.has_value());
  EXPECT_FALSE(losses.TakeUnreported().has_value());
  losses.Add(LossReason::kTooLarge, 1, 30, 30);
  losses.Return(*loss);
  const auto again = losses.TakeUnreported();
  ASSERT_TRUE(again.has_value());
  EXPECT_EQ(again->count, 3u);
  EXPECT_EQ(again->first_ns, 10u);
  EXPECT_EQ(again->last_ns, 30u);
  // What was returned was counted before.
  EXPECT_EQ(losses.Total(LossReason::kTooLarge), 3u);
}

}  // namespace
}  // namespace tracefs
