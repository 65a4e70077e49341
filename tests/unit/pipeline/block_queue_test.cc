// BlockQueue: bounded, whole blocks or nothing, and its end is never missed.
#include "tracefs/pipeline/block_queue.h"

#include <gtest/gtest.h>

#include "tracefs/pipeline/loss.h"

namespace tracefs {
namespace {

BlockInfo Info(uint64_t sequence, bool last = false) {
  return {.sequence = sequence, .last = last};
}

TEST(BlockQueueTest, BytesComeOutAsTheyWentIn) {
  auto queue = std::make_shared<BlockQueue>(100);
  const auto output = MakeBlockQueueOutput(queue);
  TraceIdentity identity;
  identity.preamble = "preamble";
  ASSERT_TRUE(output->Initialize(identity).ok());
  ASSERT_TRUE(output->Write(AsBytes("head"), AsBytes("block"), Info(0)).ok());
  ASSERT_TRUE(output->Write(AsBytes("HEAD"), AsBytes("BLOCK"), Info(1)).ok());
  EXPECT_EQ(queue->gauge().bytes, 26u);
  EXPECT_EQ(queue->gauge().blocks, 3u);
  EXPECT_EQ(queue->Take(10), "preamblehe");
  EXPECT_EQ(queue->Take(3), "adb");
  EXPECT_EQ(queue->Take(100), "lockHEADBLOCK");
  EXPECT_EQ(queue->Take(100), "");
  EXPECT_EQ(queue->gauge().bytes, 0u);
}

TEST(BlockQueueTest, DataLoss_WhatFindsNoRoomIsRefusedWhole) {
  auto queue = std::make_shared<BlockQueue>(20);
  const auto output = MakeBlockQueueOutput(queue);
  ASSERT_TRUE(output->Write(AsBytes("0123456789"), {}, Info(1)).ok());
  const Status refused =
      output->Write(AsBytes("0123456789"), AsBytes("x"), Info(2));
  EXPECT_EQ(LossReasonOf(refused), LossReason::kQueueFull);
  ASSERT_TRUE(output->Write(AsBytes("abc"), {}, Info(2)).ok());
  EXPECT_EQ(queue->Take(100), "0123456789abc");
  // The header of the trace and its FINAL find room always.
  ASSERT_TRUE(output->Write(AsBytes(std::string(50, 'h')), {}, Info(0)).ok());
  EXPECT_FALSE(output->Write(AsBytes("x"), {}, Info(3)).ok());
  ASSERT_TRUE(output->Write(AsBytes("final"), {}, Info(3, true)).ok());
  EXPECT_EQ(queue->Take(100).size(), 55u);
}

}  // namespace
}  // namespace tracefs
