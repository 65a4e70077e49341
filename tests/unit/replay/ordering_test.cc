// What waits for what: the counters against a plain rule.
#include "tracefs/replay/ordering.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace tracefs::replay {
namespace {

Action Made(OrderTracker* tracker, uint32_t lane, UseKind kind,
            uint64_t key = 7) {
  Action action;
  tracker->Begin(lane);
  tracker->Use(Resource::kFile, key, kind);
  tracker->End(&action);
  return action;
}

TEST(OrderTrackerTest, ReadersWaitForTheWriterAndTheWriterForAllOfThem) {
  OrderTracker tracker;
  const Action write = Made(&tracker, 0, UseKind::kAlone);
  EXPECT_FALSE(write.orders[0].waits);
  for (const uint32_t lane : {1u, 2u}) {
    const Action read = Made(&tracker, lane, UseKind::kShared);
    EXPECT_TRUE(read.orders[0].waits);
    EXPECT_EQ(read.orders[0].need, 1u);
  }
  const Action again = Made(&tracker, 0, UseKind::kAlone);
  EXPECT_TRUE(again.orders[0].waits);
  EXPECT_EQ(again.orders[0].need, 3u);
}

TEST(OrderTrackerTest, AThreadByItselfNeverWaits) {
  OrderTracker tracker;
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(Made(&tracker, 3, i % 3 ? UseKind::kShared : UseKind::kAlone)
                     .orders[0]
                     .waits);
  }
}

TEST(OrderTrackerTest, OneActionUsesACounterOnce) {
  OrderTracker tracker;
  Action action;
  tracker.Begin(0);
  tracker.Use(Resource::kName, 1, UseKind::kShared);
  tracker.Use(Resource::kName, 1, UseKind::kAlone);
  tracker.End(&action);
  EXPECT_EQ(action.order_count, 1u);
  EXPECT_TRUE(Made(&tracker, 1, UseKind::kShared, 2).order_count == 1);
}

// Plays plans in random orders that the counters allow: no two uses that
// exclude each other change places, and somebody can always go on.
TEST(OrderTrackerTest, WhateverRunsNextConflictingUsesKeepTheirOrder) {
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    OrderTracker tracker;
    struct Step {
      Action action;
      std::map<uint64_t, UseKind> uses;
      bool done = false;
    };
    std::vector<Step> plan;
    for (int i = 0; i < 40; ++i) {
      Step step;
      step.action.lane = random() % 4;
      tracker.Begin(step.action.lane);
      for (int u = 0; u < 2; ++u) {
        const uint64_t key = random() % 3;
        const auto kind = static_cast<UseKind>(random() % 4);
        if (!step.uses.emplace(key, kind).second) continue;
        tracker.Use(Resource::kFile, key, kind);
      }
      tracker.End(&step.action);
      plan.push_back(step);
    }
    std::map<uint32_t, uint32_t> counters;
    for (size_t left = plan.size(); left > 0; --left) {
      std::vector<size_t> can;
      std::map<uint32_t, bool> lane_blocked;
      for (size_t i = 0; i < plan.size(); ++i) {
        if (plan[i].done || lane_blocked[plan[i].action.lane]) continue;
        lane_blocked[plan[i].action.lane] = true;
        bool ready = true;
        for (uint32_t o = 0; o < plan[i].action.order_count; ++o) {
          const Order& order = plan[i].action.orders[o];
          ready &= !order.waits || counters[order.counter] >= order.need;
        }
        if (ready) can.push_back(i);
      }
      ASSERT_FALSE(can.empty());
      const size_t next = can[random() % can.size()];
      for (size_t i = 0; i < next; ++i) {
        if (plan[i].done) continue;
        for (const auto& [key, kind] : plan[i].uses) {
          const auto mine = plan[next].uses.find(key);
          if (mine == plan[next].uses.end()) continue;
          ASSERT_TRUE(kind == mine->second && kind != UseKind::kAlone);
        }
      }
      plan[next].done = true;
      for (uint32_t o = 0; o < plan[next].action.order_count; ++o) {
        ++counters[plan[next].action.orders[o].counter];
      }
    }
  }
}

}  // namespace
}  // namespace tracefs::replay
