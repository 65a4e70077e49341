#include "tracefs/fs/user_shares.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace tracefs {
namespace {

// Takes for `uid` until it is refused; how many that were.
int TakeAll(UserShares& shares, uint32_t uid) {
  int taken = 0;
  while (shares.Take(uid)) ++taken;
  return taken;
}

TEST(UserSharesTest, OneUserAloneGetsHalf) {
  UserShares shares(100);
  EXPECT_EQ(TakeAll(shares, 1000), 50);
  EXPECT_EQ(shares.largest_share(), 50);
  EXPECT_EQ(shares.used(), 50);
}

TEST(UserSharesTest, Greedy_LeavesSomethingForTheNext) {
  UserShares shares(1000);
  for (uint32_t uid = 1000; uid < 1008; ++uid) {
    EXPECT_GT(TakeAll(shares, uid), 0) << uid;
  }
  EXPECT_LT(shares.used(), 1000);
}

TEST(UserSharesTest, Greedy_NoNumberOfUsersTakesWhatIsForRoot) {
  UserShares shares(100, /*for_root=*/20);
  for (uint32_t uid = 1; uid < 5000; ++uid) TakeAll(shares, uid);
  EXPECT_LE(shares.used(), 80);
  EXPECT_EQ(TakeAll(shares, 0), 100 - 80);
  EXPECT_EQ(shares.used(), 100);
}

TEST(UserSharesTest, WhatIsGivenBackCanBeTakenAgain) {
  UserShares shares(100);
  const int taken = TakeAll(shares, 1000);
  for (int i = 0; i < taken; ++i) shares.Give(1000);
  EXPECT_EQ(shares.used(), 0);
  EXPECT_EQ(TakeAll(shares, 1000), taken);
}

TEST(UserSharesTest, RefusalsAreCountedAndTakeNothing) {
  UserShares shares(2);
  EXPECT_TRUE(shares.Take(1000));
  EXPECT_FALSE(shares.Take(1000));
  EXPECT_EQ(shares.refused(), 1u);
  EXPECT_EQ(shares.used(), 1);
}

TEST(UserSharesTest, MoreUsersThanPlacesShareOne) {
  UserShares shares(1 << 30);
  for (uint32_t uid = 1; uid <= 3000; ++uid) ASSERT_TRUE(shares.Take(uid));
  for (uint32_t uid = 1; uid <= 3000; ++uid) shares.Give(uid);
  EXPECT_EQ(shares.used(), 0);
}

TEST(UserSharesTest, Race_ManyThreadsNeverGetTooMuch) {
  UserShares shares(64);
  std::vector<std::thread> threads;
  for (uint32_t uid = 1; uid <= 4; ++uid) {
    threads.emplace_back([&shares, uid] {
      for (int i = 0; i < 20000; ++i) {
        if (!shares.Take(uid)) continue;
        ASSERT_LE(shares.used(), 64 + 4);
        shares.Give(uid);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(shares.used(), 0);
}

}  // namespace
}  // namespace tracefs
