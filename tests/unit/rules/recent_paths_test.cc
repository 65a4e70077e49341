// What an alarm says of the paths around it.
#include "tracefs/rules/recent_paths.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tracefs {
namespace {

class RecentPathsTest : public ::testing::Test {
 protected:
  void Touch(uint32_t pid, std::string_view path, uint32_t ppid = 1) {
    Event event;
    event.Set(Field::kPid, pid);
    event.Set(Field::kPpid, ppid);
    recent_.Note(event, path);
  }
  std::vector<std::string> Of(uint32_t pid, size_t most = 8) const {
    return recent_.Newest(most, [pid](const RecentPaths::Entry& entry) {
      return entry.pid() == pid;
    });
  }

  RecentPaths recent_;
};

TEST_F(RecentPathsTest, TheNewestComeFirstAndEachOnce) {
  for (const char* path : {"/a", "/b", "/b", "/c", "/a"}) Touch(7, path);
  Touch(8, "/other");
  EXPECT_EQ(Of(7), (std::vector<std::string>{"/a", "/c", "/b"}));
  EXPECT_EQ(Of(7, 2), (std::vector<std::string>{"/a", "/c"}));
  EXPECT_EQ(Of(9), std::vector<std::string>());
}

TEST_F(RecentPathsTest, APathThatIsNotKnownIsNotTold) {
  Touch(7, "");
  EXPECT_TRUE(Of(7).empty());
}

TEST_F(RecentPathsTest, Malicious_MemoryIsBounded) {
  for (size_t i = 0; i < 3 * RecentPaths::kKept; ++i) {
    Touch(7, "/" + std::string(4000, 'x') + std::to_string(i));
  }
  const std::vector<std::string> all = Of(7, SIZE_MAX);
  EXPECT_EQ(all.size(), RecentPaths::kKept);
  for (const std::string& path : all) {
    EXPECT_EQ(path.size(), RecentPaths::kMaxPath);
  }
  // The ends tell them apart.
  EXPECT_TRUE(
      all.front().ends_with(std::to_string(3 * RecentPaths::kKept - 1)));
}

TEST_F(RecentPathsTest, OfAProcessThatGotAnotherParentTheLastOneCounts) {
  Touch(7, "/a", 5);
  Touch(7, "/b", 1);
  Touch(8, "/c", 7);
  const auto parents = recent_.Parents();
  EXPECT_EQ(parents.at(7), 1u);
  EXPECT_EQ(parents.at(8), 7u);
}

TEST_F(RecentPathsTest, NumbersThatAreNotKnownAreAbsent) {
  Event event;
  recent_.Note(event, "/a");
  recent_.Newest(1, [](const RecentPaths::Entry& entry) {
    EXPECT_EQ(entry.pid(), 0u);
    EXPECT_FALSE(entry.Get(Field::kUid).has_value());
    EXPECT_FALSE(entry.Get(Field::kSize).has_value());  // is not kept
    return true;
  });
}

}  // namespace
}  // namespace tracefs
