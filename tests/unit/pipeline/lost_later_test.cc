// What is remembered of blocks on their way, in case they are lost after all.
#include <gtest/gtest.h>

#include <map>

#include "tracefs/format/constants.h"
#include "tracefs/pipeline/block_queue.h"
#include "tracefs/pipeline/degraded_counts.h"
#include "tracefs/pipeline/loss.h"

namespace tracefs {
namespace {

constexpr uint64_t kRemembered = 8192;

DegradedCounts::ByOp Counts(uint32_t reads, uint32_t writes,
                            uint32_t writes_before = 0) {
  DegradedCounts::ByOp counts{};
  counts[0][Index(Op::read_)] = reads;
  counts[0][Index(Op::write_)] = writes;
  counts[1][Index(Op::write_)] = writes_before;
  return counts;
}

std::map<uint16_t, uint64_t> Taken(DegradedCounts& counts) {
  std::map<uint16_t, uint64_t> taken;
  for (const format::OpTotal& total : counts.Take()) {
    EXPECT_TRUE(taken.emplace(total.msg_id, total.count).second);
  }
  return taken;
}

std::map<uint16_t, uint64_t> Told(uint64_t reads, uint64_t writes,
                                  uint64_t writes_before = 0) {
  std::map<uint16_t, uint64_t> told;
  const auto put = [&](Op op, bool before, uint64_t count) {
    if (count != 0) told[format::OperationMessage(op, before)] = count;
  };
  put(Op::read_, false, reads);
  put(Op::write_, false, writes);
  put(Op::write_, true, writes_before);
  return told;
}

TEST(DegradedCountsTest, WhatIsLostIsCountedByKindAndOnce) {
  DegradedCounts counts;
  counts.Sent(1, Counts(1, 2));
  counts.Sent(3, Counts(10, 0, 20));
  counts.Sent(7, Counts(100, 200));
  counts.Sent(8, Counts(0, 0));
  EXPECT_FALSE(counts.Lost(0));
  EXPECT_FALSE(counts.Lost(2));
  EXPECT_FALSE(counts.Lost(8));
  EXPECT_EQ(Taken(counts), Told(0, 0));
  EXPECT_TRUE(counts.Lost(3));
  EXPECT_FALSE(counts.Lost(3));
  EXPECT_EQ(Taken(counts), Told(10, 0, 20));
  EXPECT_EQ(Taken(counts), Told(0, 0));
  EXPECT_TRUE(counts.Lost(7));
  EXPECT_TRUE(counts.Lost(1));
  EXPECT_EQ(Taken(counts), Told(101, 202));
}

TEST(DegradedCountsTest, WhatIsGivenBackAddsToWhatCameMeanwhile) {
  DegradedCounts counts;
  counts.Sent(1, Counts(1, 2, 3));
  counts.Lost(1);
  const auto taken = counts.Take();
  counts.Sent(2, Counts(10, 0));
  counts.Lost(2);
  counts.Return(taken);
  // An operation that no version knows is not counted.
  counts.Return({{.msg_id = 0, .count = 5}, {.msg_id = 0xffff, .count = 5}});
  EXPECT_EQ(Taken(counts), Told(11, 2, 3));
}

TEST(DegradedCountsTest, TheLatestBlocksAreRemembered) {
  DegradedCounts counts;
  // An empty block takes no place.
  counts.Sent(0, Counts(0, 0));
  for (uint64_t i = 1; i <= kRemembered; ++i) counts.Sent(i, Counts(1, 0));
  EXPECT_FALSE(counts.Lost(0));
  counts.Sent(kRemembered + 1, Counts(1, 0));
  EXPECT_FALSE(counts.Lost(1));
  EXPECT_TRUE(counts.Lost(2));
  EXPECT_TRUE(counts.Lost(kRemembered + 1));
}

TEST(LossesOnTheWayTest, ABlockGivesBackWhatItReported) {
  LossesOnTheWay losses;
  const Loss one{LossReason::kThrottled, 3, 10, 20};
  const Loss other{LossReason::kOverrun, 4, 30, 40};
  losses.Sent(5, {one, other});
  losses.Sent(6, {});
  losses.Sent(7, {other});
  EXPECT_TRUE(losses.Take(6).empty());
  const auto taken = losses.Take(5);
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_EQ(taken[0].count, 3u);
  EXPECT_EQ(taken[1].reason, LossReason::kOverrun);
  EXPECT_TRUE(losses.Take(5).empty());
  EXPECT_EQ(losses.Take(7).size(), 1u);
}

TEST(LossesOnTheWayTest, TheLatestBlocksAreRemembered) {
  LossesOnTheWay losses;
  const Loss one{LossReason::kThrottled, 3, 10, 20};
  for (uint64_t i = 0; i < kRemembered; ++i) losses.Sent(i, {one});
  // One that reported nothing takes no place.
  losses.Sent(kRemembered, {});
  // One that was taken makes room.
  EXPECT_EQ(losses.Take(5).size(), 1u);
  losses.Sent(kRemembered + 1, {one});
  losses.Sent(kRemembered + 2, {one});
  EXPECT_TRUE(losses.Take(0).empty());
  EXPECT_EQ(losses.Take(1).size(), 1u);
}

TEST(LossReasonTest, NamesAndErrorsTellReasonsApart) {
  const std::map<LossReason, std::string_view> names = {
      {LossReason::kOutputError, "output_error"},
      {LossReason::kTooLarge, "too_large"},
      {LossReason::kQueueFull, "queue_full"},
      {LossReason::kThrottled, "throttled"},
      {LossReason::kDegraded, "degraded"},
      {LossReason::kRefused, "refused"},
      {LossReason::kOverrun, "overrun"},
      {LossReason::kDied, "died"}};
  ASSERT_EQ(names.size(), kLossReasonCount);
  for (const auto& [reason, name] : names) {
    EXPECT_EQ(LossReasonName(reason), name);
  }
  EXPECT_EQ(LossReasonName(static_cast<LossReason>(kLossReasonCount)),
            "unknown");
  for (const LossReason reason :
       {LossReason::kQueueFull, LossReason::kThrottled}) {
    EXPECT_EQ(LossReasonOf(DroppedStatus(reason, "why")), reason);
  }
  EXPECT_EQ(LossReasonOf(Status::System(ENOSPC, "disk")),
            LossReason::kOutputError);
  EXPECT_EQ(LossReasonOf(Status::Invalid("odd")), LossReason::kOutputError);
}

TEST(LossCounterTest, TheEarlierTimeStandsWhicheverComesBackFirst) {
  LossCounter losses;
  losses.Add(LossReason::kOverrun, 1, 50, 60);
  const auto taken = losses.TakeUnreported();
  losses.Add(LossReason::kOverrun, 2, 10, 20);
  losses.Return(*taken);
  const auto both = losses.TakeUnreported();
  ASSERT_TRUE(both);
  EXPECT_EQ(both->count, 3u);
  EXPECT_EQ(both->first_ns, 10u);
  EXPECT_EQ(both->last_ns, 60u);
  losses.Return(*both);
  EXPECT_EQ(losses.TakeUnreported()->count, 3u);
  losses.Add(LossReason::kOverrun, 1, 10, 20);
  losses.Add(LossReason::kOverrun, 1, 30, 40);
  EXPECT_EQ(losses.TakeUnreported()->last_ns, 40u);
}

TEST(BlockQueueTest, WakesItsReaderForBlocksAndForTheEnd) {
  BlockQueue queue(10);
  int woken = 0;
  queue.SetWake([&] { ++woken; });
  EXPECT_TRUE(queue.Put(AsBytes("0123456789"), {}, false));
  EXPECT_EQ(woken, 1);
  EXPECT_FALSE(queue.Put(AsBytes("x"), {}, false));
  EXPECT_EQ(woken, 1);
  EXPECT_EQ(queue.gauge().limit_bytes, 10u);
  // What was read makes room, to the byte.
  EXPECT_EQ(queue.Take(4), "0123");
  EXPECT_EQ(queue.gauge().bytes, 6u);
  EXPECT_FALSE(queue.Put(AsBytes("abcde"), {}, false));
  EXPECT_TRUE(queue.Put(AsBytes("ab"), AsBytes("cd"), false));
  EXPECT_EQ(queue.Take(7), "456789a");
  EXPECT_EQ(queue.gauge().blocks, 1u);
  EXPECT_FALSE(queue.ended());
  queue.End();
  EXPECT_TRUE(queue.ended());
  EXPECT_EQ(woken, 3);
  EXPECT_EQ(queue.Take(7), "bcd");
}

}  // namespace
}  // namespace tracefs
