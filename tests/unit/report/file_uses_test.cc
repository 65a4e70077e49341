// Which process used which file, against a map.
#include "tracefs/report/file_uses.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <utility>
#include <vector>

namespace tracefs::report {
namespace {

using Counts = std::map<std::pair<NodeId, NodeId>, uint64_t>;

Counts CountsOf(const FileUses& uses) {
  Counts counts;
  for (const FileUses::Use& use : uses.uses()) {
    EXPECT_TRUE(
        counts.emplace(std::pair{use.file, use.process}, use.count).second);
  }
  return counts;
}

TEST(FileUsesTest, NodesThatChangeTheirNumbersAreJoined) {
  FileUses uses;
  Counts expected;
  std::mt19937 random(3);
  for (int i = 0; i < 5'000; ++i) {
    const NodeId file = random() % 40;
    const NodeId process = random() % 30;
    uses.Add(file, process, {.count = 2, .errors = 1, .bytes = 3});
    expected[{file, process}] += 2;
  }
  EXPECT_EQ(CountsOf(uses), expected);
  // Half of the files are now those before them; processes as they were.
  std::vector<NodeId> files(40);
  for (NodeId i = 0; i < 40; ++i) files[i] = i / 2;
  uses.Renumber(files, {});
  Counts joined;
  for (const auto& [pair, count] : expected) {
    joined[{pair.first / 2, pair.second}] += count;
  }
  EXPECT_EQ(CountsOf(uses), joined);
  EXPECT_EQ(uses.missed(), 0u);
}

TEST(FileUsesTest, PairsWithoutRoomAreCounted) {
  FileUses uses;
  for (NodeId i = 0; i < FileUses::kMost + 10; ++i) {
    uses.Add(i, 1, {.count = 1});
  }
  EXPECT_EQ(uses.uses().size(), FileUses::kMost);
  EXPECT_EQ(uses.missed(), 10u);
  // Those that have room go on.
  uses.Add(5, 1, {.count = 1});
  EXPECT_EQ(uses.uses()[5].count, 2u);
  EXPECT_EQ(uses.missed(), 10u);
}

}  // namespace
}  // namespace tracefs::report
