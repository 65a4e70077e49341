// When requests are handed over, and when they come back; by a clock of its
// own.
#include "tracefs/fs/wait_rule.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <set>
#include <string_view>
#include <thread>

#include "tracefs/fs/preemption.h"

namespace tracefs {
namespace {

constexpr uint64_t kUs = 1'000;
constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kSecond = 1'000 * kMs;

// A store, one request at a time, each made where the rule says.
class WaitRuleTest : public testing::Test {
 protected:
  // Makes `count` requests that take so long; how many were handed over.
  int Make(int count, uint64_t took_ns, uint64_t bytes = 0) {
    int aside = 0;
    for (int i = 0; i < count; ++i) {
      now_ns_ += took_ns;
      if (rule_.hands_over()) {
        ++aside;
        rule_.NoteAside(now_ns_, took_ns, bytes);
      } else {
        rule_.NoteHere(now_ns_, took_ns, bytes);
      }
    }
    return aside;
  }
  // How many fast ones go aside before the first that does not.
  int AsideUntilItComesBack() {
    int count = 0;
    while (rule_.hands_over() && count < 1'000'000) {
      Make(1, 5 * kUs);
      ++count;
    }
    return count;
  }

  WaitRule rule_;
  uint64_t now_ns_ = 1'000 * kSecond;
};

TEST_F(WaitRuleTest, WhatDoesNotWaitIsMadeWhereItIsRead) {
  EXPECT_EQ(Make(100'000, 5 * kUs), 0);
  EXPECT_EQ(rule_.waited_here(), 0u);
}

TEST_F(WaitRuleTest, AStoreThatWaitsIsNoticedWithinThreeRequests) {
  EXPECT_GE(Make(100, 200 * kUs), 97);
  EXPECT_EQ(rule_.changes(), 1u);
}

TEST_F(WaitRuleTest, SuspectsForAWhileAfterOneThatTookLong) {
  EXPECT_FALSE(rule_.suspects());
  Make(1, 200 * kUs);
  for (int i = 0; i < 8; ++i) {
    EXPECT_TRUE(rule_.suspects()) << i;
    Make(1, 5 * kUs);
  }
  EXPECT_FALSE(rule_.suspects());
}

TEST_F(WaitRuleTest, TheLongerTheWaitTheSooner) {
  EXPECT_EQ(Make(100, 5 * kMs), 98);
  now_ns_ += 10 * kSecond;
  AsideUntilItComesBack();
  EXPECT_EQ(Make(100, 30 * kMs), 99);
}

TEST_F(WaitRuleTest, OneThatLostItsProcessorNowAndThenChangesNothing) {
  for (int i = 0; i < 1'000; ++i) {
    EXPECT_EQ(Make(1, 3 * kMs), 0);
    EXPECT_EQ(Make(30, 5 * kUs), 0);
  }
  EXPECT_EQ(rule_.waited_here(), 1'000u);
  EXPECT_EQ(rule_.longest_ns(), 3 * kMs);
}

TEST_F(WaitRuleTest, FastSlowFast) {
  EXPECT_EQ(Make(1'000, 5 * kUs), 0);
  EXPECT_EQ(Make(1'000, 5 * kMs), 998);
  EXPECT_LE(AsideUntilItComesBack(), 16);
  EXPECT_EQ(Make(1'000, 5 * kUs), 0);
  EXPECT_EQ(rule_.handed_over(), 998u + 16u);
}

TEST_F(WaitRuleTest, SlowOnesAmongFastOnesStayAside) {
  int here_and_slow = 0;
  for (int i = 0; i < 10'000; ++i) {
    // A tenth waits, as where most is cached.
    here_and_slow += 1 - Make(1, 5 * kMs);
    Make(9, 5 * kUs);
  }
  EXPECT_LT(here_and_slow, 10);
}

TEST_F(WaitRuleTest, WhoCameBackTooSoonStaysLongerEachTime) {
  int last = 0;
  for (int i = 0; i < 6; ++i) {
    Make(10, 5 * kMs);
    const int count = AsideUntilItComesBack();
    EXPECT_GT(count, last);
    last = count;
  }
  EXPECT_LE(last, 16 << 5);
  // And no longer when it was well for a while.
  now_ns_ += 10 * kSecond;
  Make(10, 5 * kMs);
  EXPECT_EQ(AsideUntilItComesBack(), 16);
}

TEST_F(WaitRuleTest, BytesMayTakeTheirTime) {
  constexpr uint64_t kMiB = 1 << 20;
  EXPECT_EQ(Make(1'000, 400 * kUs, kMiB), 0);
  EXPECT_GE(Make(100, 2 * kMs, kMiB), 97);
}

TEST_F(WaitRuleTest, WhatIsThereToWaitBeginsAsideAndMayComeBack) {
  rule_.SetBegin(WaitRule::Begin::kAside);
  EXPECT_EQ(Make(10, 5 * kMs), 10);
  EXPECT_EQ(AsideUntilItComesBack(), 16);
}

TEST_F(WaitRuleTest, WhatMayNeverBeAnsweredIsAlwaysHandedOver) {
  rule_.SetBegin(WaitRule::Begin::kAlwaysAside);
  EXPECT_EQ(Make(100'000, 5 * kUs), 100'000);
}

TEST(WaitRulesTest, OnlyWhatIsThereToWaitBeginsAside) {
  WaitRules rules;
  rules.SetUp(/*may_hang=*/false);
  for (const Op op : {Op::lookup_, Op::create_, Op::read_, Op::getattr_}) {
    EXPECT_FALSE(rules.Of(op).hands_over());
  }
  EXPECT_TRUE(rules.Of(Op::fsync_).hands_over());
  rules.SetUp(/*may_hang=*/true);
  for (const Op op : {Op::lookup_, Op::create_, Op::read_, Op::getattr_}) {
    EXPECT_TRUE(rules.Of(op).hands_over());
  }
}

TEST(WaitRulesTest, WhatThePageCacheServesSaysNothingOfWhatGoesToTheDisk) {
  WaitRules rules;
  rules.SetUp(/*may_hang=*/false);
  for (const Op op : {Op::read_, Op::write_}) {
    EXPECT_TRUE(rules.Of(op, /*to_disk=*/true).hands_over());
    for (int i = 0; i < 1000; ++i) {
      rules.Of(op).NoteHere(kSecond, 5 * kUs, 0);
      rules.Of(op).NoteAside(kSecond, 5 * kUs, 0);
      rules.Of(op, /*to_disk=*/true).NoteAside(kSecond, 5 * kMs, 0);
    }
    EXPECT_FALSE(rules.Of(op).hands_over());
    EXPECT_TRUE(rules.Of(op, /*to_disk=*/true).hands_over());
  }
  EXPECT_NE(&rules.Of(Op::read_, true), &rules.Of(Op::write_, true));
}

TEST(WaitRulesTest, EachHasANameOfItsOwn) {
  WaitRules rules;
  std::set<std::string_view> names;
  std::set<const WaitRule*> seen;
  rules.ForEach([&](std::string_view name, const WaitRule& rule) {
    names.insert(name);
    seen.insert(&rule);
  });
  EXPECT_EQ(names.size(), kOpCount + 2);
  EXPECT_EQ(seen.size(), kOpCount + 2);
}

// Two threads on one processor, one of which never sleeps.
TEST(LostProcessorTest, ASleepIsNoLossAndASharedProcessorIs) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &before)) continue;
    CPU_SET(cpu, &one);
    break;
  }
  std::atomic<bool> done{false};
  const auto spin = [](std::chrono::milliseconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end) {
    }
  };
  std::thread rival([&] {
    ::sched_setaffinity(0, sizeof one, &one);
    while (!done) spin(std::chrono::milliseconds(1));
  });
  bool lost = false;
  bool slept = false;
  std::thread asks([&] {
    ::sched_setaffinity(0, sizeof one, &one);
    for (int i = 0; i < 100 && !lost; ++i) {
      spin(std::chrono::milliseconds(50));
      lost = LostProcessorSinceAsked();
    }
    done = true;
    rival.join();
    // Whatever else runs here may take it once or twice, but not always.
    for (int i = 0; i < 1'000 && !slept; ++i) {
      LostProcessorSinceAsked();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      slept = !LostProcessorSinceAsked();
    }
  });
  asks.join();
  EXPECT_TRUE(lost);
  EXPECT_TRUE(slept);
}

TEST(NotComputedTest, ASleepIsAWaitAndAComputationIsNone) {
  using std::chrono::milliseconds;
  constexpr uint64_t kTook = 20'000'000;
  const uint64_t before = ComputedNs();
  std::this_thread::sleep_for(milliseconds(20));
  EXPECT_GT(NotComputed(kTook, before), kTook / 2);
  while (ComputedNs() - before < kTook) {
  }
  EXPECT_EQ(NotComputed(kTook, before), 0u);
}

}  // namespace
}  // namespace tracefs
