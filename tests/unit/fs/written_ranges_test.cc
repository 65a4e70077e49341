// What was written, in few pieces or many.
#include "tracefs/fs/written_ranges.h"

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>

namespace tracefs {
namespace {

std::string Text(const WrittenRanges& ranges) {
  std::string text;
  for (const WrittenRange& r : ranges.ranges()) {
    if (!text.empty()) text += ' ';
    text += std::to_string(r.begin) + '-' + std::to_string(r.end);
  }
  return text + (ranges.widened() ? " widened" : "");
}

TEST(WrittenRangesTest, WhatOverlapsOrTouchesIsOne) {
  WrittenRanges ranges;
  ranges.Add(10, 20);
  ranges.Add(40, 50);
  EXPECT_EQ(Text(ranges), "10-20 40-50");
  ranges.Add(20, 25);
  ranges.Add(30, 40);
  EXPECT_EQ(Text(ranges), "10-25 30-50");
  ranges.Add(0, 5);
  EXPECT_EQ(Text(ranges), "0-5 10-25 30-50");
  ranges.Add(12, 31);
  EXPECT_EQ(Text(ranges), "0-5 10-50");
  ranges.Add(0, 100);
  EXPECT_EQ(Text(ranges), "0-100");
}

TEST(WrittenRangesTest, NothingIsNoRange) {
  WrittenRanges ranges;
  ranges.Add(5, 5);
  ranges.Add(6, 5);
  EXPECT_TRUE(ranges.empty());
}

TEST(WrittenRangesTest, BeyondTheBudgetItIsOneAndSaysSo) {
  WrittenRanges ranges;
  for (uint64_t i = 0; i < WrittenRanges::kMost; ++i) {
    ranges.Add(100 + i * 10, 101 + i * 10);
  }
  EXPECT_EQ(ranges.ranges().size(), WrittenRanges::kMost);
  EXPECT_FALSE(ranges.widened());
  ranges.Add(50, 51);
  EXPECT_EQ(Text(ranges), "50-251 widened");
  ranges.Add(500, 501);
  EXPECT_EQ(Text(ranges), "50-501 widened");
}

TEST(WrittenRangesTest, AtTheEndOfNumbers) {
  WrittenRanges ranges;
  ranges.Add(UINT64_MAX - 1, UINT64_MAX);
  ranges.Add(0, 1);
  EXPECT_EQ(ranges.ranges().size(), 2u);
}

TEST(WrittenRangesTest, ItHoldsWhatASetOfBytesHolds) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    WrittenRanges ranges;
    std::set<uint64_t> bytes;
    for (int i = 0; i < 12; ++i) {
      const uint64_t begin = random() % 60;
      const uint64_t end = begin + random() % 12;
      ranges.Add(begin, end);
      for (uint64_t at = begin; at < end; ++at) bytes.insert(at);
    }
    std::set<uint64_t> held;
    uint64_t last = 0;
    for (const WrittenRange& r : ranges.ranges()) {
      ASSERT_LT(r.begin, r.end);
      ASSERT_TRUE(held.empty() || r.begin > last) << Text(ranges);
      last = r.end;
      for (uint64_t at = r.begin; at < r.end; ++at) held.insert(at);
    }
    ASSERT_FALSE(ranges.widened());
    ASSERT_EQ(held, bytes);
  }
}

TEST(WriteNotesTest, WhatWasWidenedStaysSo) {
  WriteNotes notes;
  for (uint64_t i = 0; i <= WrittenRanges::kMost; ++i) {
    notes.Add(i * 10, i * 10 + 1);
  }
  const WrittenRanges taken = notes.Take();
  EXPECT_TRUE(taken.widened());
  notes.Add(1000, 1001);
  notes.Return(taken);
  EXPECT_EQ(Text(notes.Take()), "0-1001 widened");
  EXPECT_FALSE(notes.Take().widened());
}

TEST(WriteNotesTest, WhatIsGivenBackIsThereAgain) {
  WriteNotes notes;
  notes.Add(0, 10);
  const WrittenRanges taken = notes.Take();
  EXPECT_EQ(Text(taken), "0-10");
  notes.Add(20, 30);
  notes.Return(taken);
  EXPECT_EQ(Text(notes.Take()), "0-10 20-30");
  EXPECT_TRUE(notes.Take().empty());
}

}  // namespace
}  // namespace tracefs
