// Depths of queues against a model that looks at each moment.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "tests/unit/query/told_operations.h"

namespace tracefs::query {
namespace {

std::vector<Table> Ask(const std::vector<ToldOperation>& all) {
  return AskOf(MakeQueueing({}).get(), all);
}

TEST(QueueingTest, AddsUpTheTimeAtEachDepth) {
  std::mt19937_64 random(9);
  for (int round = 0; round < 50; ++round) {
    std::vector<ToldOperation> all;
    uint64_t now = 0;
    for (int i = 0; i < 40; ++i) {
      now += random() % 6;  // some begin together
      all.push_back({.since_ns = now,
                     .ns = random() % 15,
                     .pid = static_cast<uint32_t>(1 + random() % 3),
                     .trace = random() % 2});
    }
    std::map<uint64_t, uint64_t> depths;
    for (uint64_t ns = 0; ns < now + 20; ++ns) {
      uint64_t depth = 0;
      for (const ToldOperation& told : all) {
        if (told.since_ns <= ns && ns < told.since_ns + told.ns) ++depth;
      }
      if (depth != 0) ++depths[depth];
    }
    const std::vector<Table> answer = Ask(all);
    std::map<uint64_t, uint64_t> told;
    for (size_t i = 0; i < answer[0].rows.size(); ++i) {
      told[NumberAt(answer[0], i, "depth")] = NumberAt(answer[0], i, "time");
    }
    EXPECT_EQ(told, depths);
    // Of each process: those that began while another one of it ran.
    std::map<uint64_t, uint64_t> overlapping;
    std::map<uint64_t, uint64_t> ends;
    std::map<uint64_t, uint64_t> of_process;
    for (const ToldOperation& one : all) {
      const uint64_t process = one.trace * 100 + one.pid;
      if (ends[process] > one.since_ns) ++overlapping[process];
      ends[process] = std::max(ends[process], one.since_ns + one.ns);
    }
    std::multiset<uint64_t> counts;
    for (const auto& [process, count] : overlapping) counts.insert(count);
    std::multiset<uint64_t> listed;
    for (size_t i = 0; i < answer[1].rows.size(); ++i) {
      listed.insert(NumberAt(answer[1], i, "overlapping"));
    }
    EXPECT_EQ(listed, counts);
  }
}

TEST(QueueingTest, ProcessesOfTwoHostsWithOnePidAreTwo) {
  const std::vector<Table> answer =
      Ask({{.since_ns = 0, .ns = 10, .pid = 7},
           {.since_ns = 5, .ns = 10, .pid = 7, .trace = 1}});
  EXPECT_EQ(answer[1].rows.size(), 0u);
  EXPECT_EQ(NumberAt(answer[0], 0, "time") + NumberAt(answer[0], 1, "time"),
            15u);
}

TEST(QueueingTest, DurationsThatAreLiesEndAtTheTop) {
  const std::vector<Table> answer =
      Ask({{.since_ns = 0, .ns = UINT64_MAX}, {.since_ns = 4, .ns = 2}});
  ASSERT_EQ(answer[0].rows.size(), 2u);
  EXPECT_EQ(NumberAt(answer[0], 1, "depth"), 2u);
  EXPECT_EQ(NumberAt(answer[0], 1, "time"), 2u);
}

}  // namespace
}  // namespace tracefs::query
