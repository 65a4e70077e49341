// Which inodes a trace has touched: against a set of the standard library.
#include "drivers/assembly/touched_inodes.h"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <set>
#include <thread>
#include <vector>

namespace tracefs {
namespace {

TEST(TouchedInodesTest, AnswersAsASetDoes) {
  TouchedInodes touched;
  std::set<uint64_t> oracle;
  std::mt19937_64 random(7);
  for (int i = 0; i < 200'000; ++i) {
    const uint64_t inode = 2 + random() % 5000;
    if (random() % 4 == 0) {
      touched.Remove(inode);
      oracle.erase(inode);
    } else {
      ASSERT_EQ(touched.Add(inode), oracle.insert(inode).second);
    }
    const uint64_t other = 2 + random() % 6000;
    ASSERT_EQ(touched.Has(other), oracle.contains(other));
  }
}

TEST(TouchedInodesTest, AddsEachOnceForAllThreads) {
  TouchedInodes touched;
  std::atomic<int> added{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (uint64_t inode = 2; inode < 20'002; ++inode) {
        if (touched.Add(inode)) ++added;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(added, 20'000);
}

TEST(TouchedInodesTest, IsFullAtSomeTimeAndSaysSo) {
  TouchedInodes touched;
  size_t added = 0;
  for (uint64_t inode = 2; inode < 2 + 2 * TouchedInodes::kMost; ++inode) {
    if (touched.Add(inode)) ++added;
  }
  EXPECT_LE(added, TouchedInodes::kMost);
  EXPECT_GE(added, TouchedInodes::kMost / 2);
}

}  // namespace
}  // namespace tracefs
