#include "tracefs/fs/page_order.h"

#include <gtest/gtest.h>

#include <string>

namespace tracefs {
namespace {

constexpr uint64_t kPage = PageOrder::kPageBytes;
constexpr uint64_t kNow = 5'000'000'000;

// The parts of a page-out that are written: "0+4096 …".
std::string Parts(const PageOrder& order, uint64_t offset, uint64_t bytes,
                  uint64_t now = kNow) {
  std::string parts;
  EXPECT_TRUE(
      order.ForEachPart(offset, bytes, now, [&](uint64_t at, uint64_t count) {
        if (!parts.empty()) parts += " ";
        parts += std::to_string(at) + "+" + std::to_string(count);
        return true;
      }));
  return parts;
}

TEST(PageOrderTest, PagesGoOutWholeWhereNothingWasWritten) {
  PageOrder order;
  EXPECT_EQ(Parts(order, 0, 3 * kPage), "0+12288");
  order.NotePagesRead(0, kPage);
  EXPECT_EQ(Parts(order, 100, 50), "100+50");
}

TEST(PageOrderTest, WhatWasWrittenSinceThePageWasReadStays) {
  PageOrder order;
  order.NotePagesRead(0, kPage);
  order.NoteWritten(8, 8, kNow);
  EXPECT_EQ(Parts(order, 0, kPage), "0+8 16+4080");
  EXPECT_EQ(Parts(order, 8, 8), "");
  EXPECT_EQ(Parts(order, 12, 8), "16+4");
}

TEST(PageOrderTest, APageThatWasReadSinceGoesOutWhole) {
  PageOrder order;
  order.NotePagesRead(0, 2 * kPage);
  order.NoteWritten(0, 2 * kPage, kNow);
  order.NotePagesRead(kPage, kPage);
  EXPECT_EQ(Parts(order, 0, 2 * kPage), "4096+4096");
}

TEST(PageOrderTest, EachWriteSinceThenCounts) {
  PageOrder order;
  order.NotePagesRead(0, 2 * kPage);
  order.NoteWritten(10, 10, kNow);
  order.NoteWritten(4090, 10, kNow);  // over the border
  EXPECT_EQ(Parts(order, 0, 2 * kPage), "0+10 20+4070 4100+4092");
}

TEST(PageOrderTest, WritesAreForgottenInTime) {
  PageOrder order;
  order.NotePagesRead(0, kPage);
  order.NoteWritten(0, 8, kNow);
  EXPECT_EQ(Parts(order, 0, kPage, kNow + PageOrder::kLastsNs), "0+4096");
}

TEST(PageOrderTest, OldNotesMakeRoom) {
  PageOrder order;
  order.NotePagesRead(0, kPage);
  for (uint64_t i = 0; i < 2 * PageOrder::kKept; ++i) {
    order.NoteWritten(i, 1, kNow);
  }
  EXPECT_EQ(Parts(order, 0, kPage), "0+64 128+3968");
}

TEST(PageOrderTest, AFailureEndsIt) {
  PageOrder order;
  order.NotePagesRead(0, kPage);
  order.NoteWritten(8, 8, kNow);
  int calls = 0;
  EXPECT_FALSE(order.ForEachPart(0, kPage, kNow, [&](uint64_t, uint64_t) {
    ++calls;
    return false;
  }));
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace tracefs
