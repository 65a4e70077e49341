// What a later daemon takes of the blocks that a dead one has left.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "tracefs/format/constants.h"
#include "tracefs/pipeline/block_builder.h"
#include "tracefs/survive/area.h"

namespace tracefs {
namespace {

constexpr uint32_t kOwner = 7;
constexpr uint64_t kNext = 30;  // number of the next block

class LeftBlocksTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = survive::Area::Make();
    ASSERT_TRUE(made.ok()) << made.status().message();
    area_ = *std::move(made);
    area_->Use();
    block_ = std::make_unique<Block>(size_t{64} << 10);
    ASSERT_TRUE(area_->IsBlock(block_.get()));
    Block::Kept& kept = block_->kept;
    kept.owner = kOwner;
    kept.events = 5;
    kept.phase = 1;
    kept.op = kOpCount - 1;
    kept.count = 3;
    kept.bytes.store(format::kBlockInfoBytes + 100);
  }

  void TearDown() override {
    block_.reset();
    area_.reset();
  }

  // What is left once `plant` has changed it.
  std::unique_ptr<Block> LeftAfter(
      const std::function<void(Block::Kept&)>& plant) {
    plant(block_->kept);
    return Block::Left(block_.get(), kOwner, kNext);
  }

  std::unique_ptr<survive::Area> area_;
  std::unique_ptr<Block> block_;
};

TEST_F(LeftBlocksTest, AWholeOneIsTaken) {
  const auto left = LeftAfter([](Block::Kept&) {});
  ASSERT_NE(left, nullptr);
  EXPECT_EQ(left->writer.size(), format::kBlockInfoBytes + 100);
  EXPECT_EQ(left->events, 5u);
  EXPECT_EQ(left->by_op[1][kOpCount - 1], 3u);
}

TEST_F(LeftBlocksTest, OneThatWasWrittenCountsIfItsNumberIsTheNext) {
  EXPECT_NE(LeftAfter([](Block::Kept& k) { k.written_as.store(kNext + 1); }),
            nullptr);
  EXPECT_EQ(LeftAfter([](Block::Kept& k) { k.written_as.store(kNext); }),
            nullptr);
}

// Its writer died; whoever came next wrote another one under that number, and
// died as well.
TEST_F(LeftBlocksTest,
       OneThatWasNotWrittenIsTakenAgainWhenItsNumberIsAnothers) {
  ASSERT_NE(LeftAfter([](Block::Kept& k) { k.written_as.store(kNext + 1); }),
            nullptr);
  EXPECT_NE(Block::Left(block_.get(), kOwner, kNext + 1), nullptr);
}

TEST_F(LeftBlocksTest, Malicious_WhatCannotBeIsLeftOut) {
  const std::pair<const char*, std::function<void(Block::Kept&)>> plants[] = {
      {"another's", [](Block::Kept& k) { k.owner = kOwner + 1; }},
      {"empty", [](Block::Kept& k) { k.bytes.store(0); }},
      {"without an operation",
       [](Block::Kept& k) { k.bytes.store(format::kBlockInfoBytes); }},
      {"longer than its place",
       [](Block::Kept& k) { k.bytes.store(survive::Area::kBlockBytes); }},
      {"longer than memory", [](Block::Kept& k) { k.bytes.store(~0ULL); }},
      {"before and after", [](Block::Kept& k) { k.phase = 2; }},
      {"no operation", [](Block::Kept& k) { k.op = kOpCount; }},
  };
  for (const auto& [what, plant] : plants) {
    TearDown();
    SetUp();
    EXPECT_EQ(LeftAfter(plant), nullptr) << what;
  }
}

}  // namespace
}  // namespace tracefs
