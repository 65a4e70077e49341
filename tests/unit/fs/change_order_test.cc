// Times that say who was first: those of operations that conflict are apart.
#include "tracefs/fs/change_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "tracefs/base/clock.h"

namespace tracefs {
namespace {

using Use = ChangeOrder::Use;

struct Span {
  uint64_t begin;
  uint64_t end;
  bool changes;
  int value;  // as it was found, or left
};

TEST(ChangeOrderTest, WhoChangesIsApartFromAllOthers) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 2000;
  ChangeOrder order;
  int value = 0;  // what is looked at and changed
  std::vector<std::vector<Span>> spans(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kRounds; ++i) {
        const bool changes = (i + t) % 3 == 0;
        const uint64_t own = MonotonicNs();  // before it has its turn
        ChangeOrder::Held held;
        held.Names(order, 7, changes ? Use::kChange : Use::kLook);
        if (changes) ++value;
        const int seen = value;
        const uint64_t begin = held.BeginOf(own);
        const uint64_t end = std::max(begin, MonotonicNs());
        held.Release(end);
        spans[static_cast<size_t>(t)].push_back({begin, end, changes, seen});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<Span> all;
  for (const auto& some : spans)
    all.insert(all.end(), some.begin(), some.end());
  std::sort(all.begin(), all.end(),
            [](const Span& a, const Span& b) { return a.begin < b.begin; });
  int expected = 0;
  uint64_t latest = 0;   // end of any
  uint64_t changed = 0;  // end of the last that changed it
  for (const Span& span : all) {
    EXPECT_GE(span.end, span.begin);
    EXPECT_GT(span.begin, span.changes ? latest : changed);
    if (span.changes) {
      ++expected;
      changed = span.end;
    }
    latest = std::max(latest, span.end);
    ASSERT_EQ(span.value, expected) << "sorted by begin";
  }
}

TEST(ChangeOrderTest, WhoDoesNotConflictKeepsHisTimes) {
  ChangeOrder order;
  ChangeOrder::Held one;
  one.Names(order, 1, Use::kLook);
  one.Release(5000);
  ChangeOrder::Held looks;
  looks.Names(order, 1, Use::kLook);
  EXPECT_EQ(looks.BeginOf(100), 100u);
  ChangeOrder::Held file;
  file.File(order, 1, Use::kChange);
  EXPECT_EQ(file.BeginOf(100), 100u) << "names are one thing, the file another";
}

TEST(ChangeOrderTest, TheNamesOfOneDirectoryTwiceAreHeldOnce) {
  ChangeOrder order;
  ChangeOrder::Held held;
  held.Names(order, 9, 9);
  held.File(order, 9, Use::kChange);
  held.Release(700);
  ChangeOrder::Held next;
  next.Names(order, 9, Use::kLook);
  EXPECT_EQ(next.BeginOf(600), 701u);
}

TEST(ChangeOrderTest, WhoMakesAFileBeginsAfterThoseWhoUsedTheOneBefore) {
  ChangeOrder order;
  ChangeOrder::Held makes;
  makes.Names(order, 1, Use::kChange);  // he began at 100
  order.Used(7, 500);
  order.Used(7, 400);  // ended earlier, says so later
  EXPECT_EQ(makes.BeginOf(100), 100u);
  makes.Makes(order, 7);
  EXPECT_EQ(makes.BeginOf(100), 501u);
  EXPECT_EQ(makes.BeginOf(600), 600u);
  ChangeOrder::Held other;
  other.Makes(order, 8);
  EXPECT_EQ(other.BeginOf(100), 100u);
}

TEST(ChangeOrderTest, TwoFilesAreHeldAsEachIsUsed) {
  ChangeOrder order;
  ChangeOrder::Held held;
  held.Files(order, 1, Use::kLook, 2);
  held.Release(700);
  ChangeOrder::Held looks;
  looks.File(order, 1, Use::kLook);
  EXPECT_EQ(looks.BeginOf(5), 5u) << "both only look";
  looks.Release(0);
  ChangeOrder::Held looks_at_changed;
  looks_at_changed.File(order, 2, Use::kLook);
  EXPECT_EQ(looks_at_changed.BeginOf(5), 701u);
  looks_at_changed.Release(0);
  // The same file twice is held once, as the stronger use.
  ChangeOrder::Held twice;
  twice.Files(order, 3, Use::kLook, 3);
  twice.Release(900);
  ChangeOrder::Held next;
  next.File(order, 3, Use::kLook);
  EXPECT_EQ(next.BeginOf(5), 901u);
}

TEST(ChangeOrderTest, RenamesToAndFroWaitInNoCircle) {
  ChangeOrder order;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 3000; ++i) {
        const uint64_t a = 1 + i % 5;
        const uint64_t b = 1 + (i + static_cast<uint64_t>(t)) % 5;
        ChangeOrder::Held held;
        t % 2 == 0 ? held.Names(order, a, b) : held.Names(order, b, a);
        held.Files(order, a, t < 2 ? Use::kLook : Use::kChange, b);
        held.Release(MonotonicNs());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(ChangeOrderTest, WhatIsGivenUpLeavesNoTime) {
  ChangeOrder order;
  {
    ChangeOrder::Held held;
    held.Names(order, 3, Use::kChange);
  }
  ChangeOrder::Held next;
  next.Names(order, 3, Use::kChange);
  EXPECT_EQ(next.BeginOf(5), 5u);
}

}  // namespace
}  // namespace tracefs
