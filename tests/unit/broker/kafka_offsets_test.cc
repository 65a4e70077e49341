#include "tracefs/broker/kafka_offsets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace tracefs {
namespace {

using Due = std::vector<std::pair<int32_t, int64_t>>;

TEST(KafkaOffsetsTest, NothingBehindAnOpenMessageIsCommitted) {
  KafkaOffsets offsets;
  const uint64_t first = offsets.Take(0, 10);
  const uint64_t second = offsets.Take(0, 11);
  const uint64_t third = offsets.Take(0, 14);  // with a gap
  offsets.Acknowledge(third);
  EXPECT_EQ(offsets.Due(), (Due{{0, 10}}));
  offsets.Committed(0, 10);
  EXPECT_TRUE(offsets.Due().empty());
  offsets.Acknowledge(first);
  EXPECT_EQ(offsets.Due(), (Due{{0, 11}}));
  offsets.Acknowledge(second);
  EXPECT_EQ(offsets.Due(), (Due{{0, 15}}));
  // What could not be committed is due again.
  EXPECT_EQ(offsets.Due(), (Due{{0, 15}}));
  offsets.Committed(0, 15);
  EXPECT_TRUE(offsets.Due().empty());
}

TEST(KafkaOffsetsTest, WhatWasTakenAwayIsNotCommitted) {
  KafkaOffsets offsets;
  const uint64_t before = offsets.Take(3, 7);
  offsets.Forget();
  offsets.Acknowledge(before);
  EXPECT_TRUE(offsets.Due().empty());
  // The same again, from where another one has left it.
  const uint64_t again = offsets.Take(3, 5);
  offsets.Acknowledge(before);
  EXPECT_EQ(offsets.Due(), (Due{{3, 5}}));
  offsets.Acknowledge(again);
  EXPECT_EQ(offsets.Due(), (Due{{3, 6}}));
}

TEST(KafkaOffsetsTest, AnyOrderEndsBehindTheLast) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    KafkaOffsets offsets;
    std::vector<std::pair<uint64_t, int64_t>> open;
    for (int64_t i = 0; i < 100; ++i) open.emplace_back(offsets.Take(1, i), i);
    std::shuffle(open.begin(), open.end(), random);
    while (!open.empty()) {
      const int64_t least = std::min_element(open.begin(), open.end(),
                                             [](const auto& a, const auto& b) {
                                               return a.second < b.second;
                                             })
                                ->second;
      ASSERT_EQ(offsets.Due(), (Due{{1, least}}));
      offsets.Acknowledge(open.back().first);
      open.pop_back();
    }
    ASSERT_EQ(offsets.Due(), (Due{{1, 100}}));
  }
}

}  // namespace
}  // namespace tracefs
