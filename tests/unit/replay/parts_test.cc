// Small parts of a replay: lanes, sums of outcomes, and how anything is opened.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/filters/output/temp_folder.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/replay/lanes.h"
#include "tracefs/replay/open_beneath.h"
#include "tracefs/replay/outcome.h"
#include "tracefs/tally/histogram.h"

namespace tracefs::replay {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

TEST(LanesTest, AThreadKeepsItsLane) {
  Lanes lanes(100);
  std::map<uint32_t, uint32_t> lane_of;
  std::mt19937 random(1);
  for (uint64_t now = 0; now < 3000; ++now) {
    const uint32_t tid = random() % 20;
    const uint32_t lane = lanes.Of(tid, now, now + random() % 100);
    const auto [at, is_new] = lane_of.try_emplace(tid, lane);
    EXPECT_EQ(at->second, lane);
    if (is_new) {
      EXPECT_EQ(
          std::ranges::count(lane_of, lane,
                             &std::pair<const uint32_t, uint32_t>::second),
          1)
          << "while there are enough, each has one of its own";
    }
  }
  EXPECT_EQ(lanes.count(), lane_of.size());
}

TEST(LanesTest, WhereTheyAreTooFewTheOneThatIsFreeFirstIsShared) {
  Lanes lanes(3);
  EXPECT_EQ(lanes.Of(1, 0, 50), 0u);
  EXPECT_EQ(lanes.Of(2, 1, 20), 1u);
  EXPECT_EQ(lanes.Of(3, 2, 90), 2u);
  EXPECT_EQ(lanes.Of(4, 3, 30), 1u) << "that of 2 ends first";
  EXPECT_EQ(lanes.Of(5, 4, 200), 1u) << "30 is still the first";
  EXPECT_EQ(lanes.Of(6, 5, 60), 0u);
  EXPECT_EQ(lanes.count(), 3u);
  EXPECT_EQ(Lanes(1).Of(9, 0, 1), 0u);
}

TEST(LanesTest, ThreadsThatFellSilentGiveTheirsAway) {
  for (const auto& [begin, lane] :
       {std::pair{10 + kSecond, 1u}, {11 + kSecond, 0u}}) {
    Lanes lanes(100);
    EXPECT_EQ(lanes.Of(1, 0, 10), 0u);
    // A second later it may have ended, and not before.
    EXPECT_EQ(lanes.Of(2, begin, begin + 1), lane);
  }
}

TEST(LanesTest, Malicious_EndlessThreadsTakeBoundedMemory) {
  Lanes lanes(4);
  for (uint32_t tid = 0; tid < 200'000; ++tid) {
    ASSERT_LT(lanes.Of(tid, tid, tid + 1), 4u);
  }
  EXPECT_LE(lanes.count(), 4u);
}

// --- Sums ------------------------------------------------------------------

TEST(OutcomeTest, EachNumberAddsUpToItself) {
  Outcome one;
  one.ops[3].count = 1;
  one.ops.front().errors[{5, 6}] = one.ops.back().errors[{5, 6}] = 7;
  one.ops[3].matched = 2;
  one.ops[3].mismatched = 4;
  one.ops[4].explained[1] = 8;
  one.ops[4].explained[6] = 16;
  one.ops[3].errors[{1, 2}] = 32;
  one.ops[3].then_ns.Add(7);
  one.ops[3].now_ns.Add(9);
  one.untimed = 64;
  one.untimed_failed = 128;
  one.bytes_compared = 256;
  one.bytes_written = 512;
  one.bytes_read = 1024;
  one.waits = 2048;
  one.skipped = 4096;
  one.lateness_ns.Add(11);
  one.elapsed_ns = 5;
  Outcome sum;
  sum.elapsed_ns = 9;
  sum.Add(one);
  sum.Add(one);
  EXPECT_EQ(sum.ops[3].count, 2u);
  EXPECT_EQ(sum.ops[3].matched, 4u);
  EXPECT_EQ(sum.ops[3].mismatched, 8u);
  EXPECT_EQ(sum.ops[4].explained[1], 16u);
  EXPECT_EQ(sum.ops[4].explained[6], 32u);
  EXPECT_EQ((sum.ops[3].errors[{1, 2}]), 64u);
  EXPECT_EQ(sum.ops[3].then_ns.sum(), 14u);
  EXPECT_EQ(sum.ops[3].now_ns.sum(), 18u);
  EXPECT_EQ(sum.untimed, 128u);
  EXPECT_EQ(sum.untimed_failed, 256u);
  EXPECT_EQ(sum.bytes_compared, 512u);
  EXPECT_EQ(sum.bytes_written, 1024u);
  EXPECT_EQ(sum.bytes_read, 2048u);
  EXPECT_EQ(sum.waits, 4096u);
  EXPECT_EQ(sum.skipped, 8192u);
  EXPECT_EQ(sum.lateness_ns.count(), 2u);
  EXPECT_EQ(sum.elapsed_ns, 9u) << "lanes run beside each other";
  using Pair = std::pair<uint32_t, uint32_t>;
  EXPECT_EQ(sum.ops.front().errors.at(Pair(5, 6)), 14u);
  EXPECT_EQ(sum.ops.back().errors.at(Pair(5, 6)), 14u);
  EXPECT_EQ(sum.operations(), 2u);
  EXPECT_EQ(sum.matched(), 4u);
  EXPECT_EQ(sum.mismatched(), 8u);
  EXPECT_EQ(sum.explained(), 48u);
}

TEST(OutcomeTest, TheFirstMismatchesAreKept) {
  Outcome sum;
  std::mt19937 random(4);
  std::vector<uint64_t> numbers;
  for (uint64_t i = 0; i < Outcome::kMostMismatches + 50; ++i) {
    numbers.push_back(i);
  }
  std::ranges::shuffle(numbers, random);
  for (size_t i = 0; i < numbers.size();) {
    Outcome lane;
    for (const size_t end = std::min(i + 7, numbers.size()); i < end; ++i) {
      lane.mismatches.push_back({numbers[i], std::to_string(numbers[i])});
    }
    sum.Add(lane);
    EXPECT_LE(sum.mismatches.size(), Outcome::kMostMismatches);
  }
  ASSERT_EQ(sum.mismatches.size(), Outcome::kMostMismatches);
  for (uint64_t i = 0; i < Outcome::kMostMismatches; ++i) {
    EXPECT_EQ(sum.mismatches[i].sequence, i);
    EXPECT_EQ(sum.mismatches[i].text, std::to_string(i));
  }
}

TEST(OutcomeTest, DistancesOfSharesAreThoseOfTheValues) {
  std::mt19937_64 random(6);
  for (int round = 0; round < 50; ++round) {
    // Below 128 each value has a bucket of its own.
    std::vector<uint64_t> values[2];
    tally::Histogram histograms[2];
    for (int side = 0; side < 2; ++side) {
      const size_t count = 1 + random() % 40;
      for (size_t i = 0; i < count; ++i) {
        values[side].push_back(random() % 30 + (side == 1 ? 5 : 0));
        histograms[side].Add(values[side].back());
      }
    }
    double distance = 0;
    for (uint64_t limit = 0; limit < 128; ++limit) {
      double shares[2];
      for (int side = 0; side < 2; ++side) {
        const auto up_to = std::ranges::count_if(
            values[side], [&](uint64_t value) { return value <= limit; });
        EXPECT_EQ(CountUpTo(histograms[side], limit),
                  static_cast<uint64_t>(up_to));
        shares[side] = static_cast<double>(up_to) /
                       static_cast<double>(values[side].size());
      }
      distance = std::max(distance, std::abs(shares[0] - shares[1]));
    }
    EXPECT_NEAR(ShareDistance(histograms[0], histograms[1]), distance, 1e-9);
    EXPECT_NEAR(ShareDistance(histograms[1], histograms[0]), distance, 1e-9);
    EXPECT_EQ(ShareDistance(histograms[0], histograms[0]), 0);
    EXPECT_EQ(ShareDistance(histograms[0], {}), 0);
    EXPECT_EQ(ShareDistance({}, histograms[0]), 0);
  }
}

TEST(OutcomeTest, EachExplanationHasAName) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < kExplainedCount; ++i) {
    names.insert(ExplainedName(static_cast<Explained>(i)));
  }
  EXPECT_EQ(names.size(), kExplainedCount);
  EXPECT_FALSE(names.contains(""));
}

// --- Opening ---------------------------------------------------------------

class OpenBeneathTest : public testing::Test {
 protected:
  OpenBeneathTest() {
    EXPECT_EQ(::mkdir(folder_.Path("dir").c_str(), 0755), 0);
    EXPECT_EQ(::mkdir(folder_.Path("dir/below").c_str(), 0755), 0);
    folder_.Write("dir/below/file", "x");
    folder_.Write("outside", "o");
    EXPECT_EQ(::symlink("below", folder_.Path("dir/link").c_str()), 0);
    EXPECT_EQ(::symlink("../outside", folder_.Path("dir/out").c_str()), 0);
    root_ = UniqueFd(
        ::open(folder_.Path("dir").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  }
  static ino_t InodeOf(int fd) {
    struct stat st {};
    return ::fstat(fd, &st) == 0 ? st.st_ino : 0;
  }
  ino_t InodeAt(const std::string& name) {
    struct stat st {};
    return ::lstat(folder_.Path(name).c_str(), &st) == 0 ? st.st_ino : 0;
  }
  // 0, or what was said.
  int Error(std::string_view name, int flags, mode_t mode = 0) {
    const UniqueFd fd(OpenBeneath(root_.get(), name, flags, mode));
    return fd ? 0 : errno;
  }

  TempFolder folder_;
  UniqueFd root_;
};

TEST_F(OpenBeneathTest, Malicious_NothingLeadsOutOfTheFolder) {
  EXPECT_EQ(Error("below", O_RDONLY | O_DIRECTORY), 0);
  EXPECT_EQ(Error("below/file", O_RDONLY), 0);
  EXPECT_EQ(Error("link", O_RDONLY), ELOOP);
  EXPECT_EQ(Error("link/file", O_RDONLY), ELOOP);
  EXPECT_EQ(Error("out", O_RDONLY), ELOOP);
  EXPECT_EQ(Error("..", O_RDONLY), EXDEV);
  EXPECT_EQ(Error("../outside", O_PATH), EXDEV);
  EXPECT_EQ(Error("/etc", O_PATH), EXDEV);
  EXPECT_EQ(Error("out", O_PATH), EXDEV) << "following it would lead out";
  // The link itself may be had.
  const UniqueFd link(OpenBeneath(root_.get(), "out", O_PATH | O_NOFOLLOW));
  ASSERT_TRUE(link) << errno;
  EXPECT_EQ(InodeOf(link.get()), InodeAt("dir/out"));
  EXPECT_NE(::fcntl(link.get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST_F(OpenBeneathTest, FilesAreMadeWithTheirMode) {
  const mode_t before = ::umask(0);
  const UniqueFd made(
      OpenBeneath(root_.get(), "new", O_RDWR | O_CREAT | O_EXCL, 0640));
  ::umask(before);
  ASSERT_TRUE(made) << errno;
  struct stat st {};
  ASSERT_EQ(::fstat(made.get(), &st), 0);
  EXPECT_EQ(st.st_mode, S_IFREG | 0640u);
  EXPECT_EQ(Error("new", O_RDWR | O_CREAT | O_EXCL, 0640), EEXIST);
  // A mode that nothing is made with is none.
  EXPECT_EQ(Error("new", O_RDONLY, 0777), 0);
  EXPECT_EQ(Error("below", O_RDONLY | O_DIRECTORY, 0777), 0);
  // Flags that O_PATH does not take are left out.
  EXPECT_EQ(Error("new", O_PATH | O_APPEND | O_NONBLOCK), 0);
}

TEST_F(OpenBeneathTest, ParentsAreFoundPartByPart) {
  std::string name;
  const UniqueFd parent = OpenParentBeneath(root_.get(), "below/file", &name);
  ASSERT_TRUE(parent);
  EXPECT_EQ(name, "file");
  EXPECT_EQ(InodeOf(parent.get()), InodeAt("dir/below"));
  const UniqueFd top = OpenParentBeneath(root_.get(), "any \"name\" ", &name);
  ASSERT_TRUE(top);
  EXPECT_EQ(name, "any \"name\" ");
  EXPECT_EQ(InodeOf(top.get()), InodeAt("dir"));
  for (const char* bad : {"", "..", ".", "below/..", "../outside", "below/",
                          "/below", "./below", "below/../out"}) {
    EXPECT_FALSE(OpenParentBeneath(root_.get(), bad, &name)) << bad;
    EXPECT_EQ(errno, EINVAL) << bad;
  }
  EXPECT_FALSE(OpenParentBeneath(root_.get(), "link/file", &name));
  EXPECT_FALSE(OpenParentBeneath(root_.get(), "none/file", &name));
  EXPECT_EQ(errno, ENOENT);
}

TEST_F(OpenBeneathTest, NamedFoldersAreFoundThroughOwnLinksAlone) {
  const auto inode = [&](const std::string& path) -> ino_t {
    const auto fd = OpenNamedFolder(path);
    return fd.ok() ? InodeOf(fd->get()) : 0;
  };
  EXPECT_EQ(inode(folder_.Path("dir")), InodeAt("dir"));
  EXPECT_EQ(inode(folder_.Path("dir//below/")), InodeAt("dir/below"));
  EXPECT_EQ(inode(folder_.Path("dir/link")), InodeAt("dir/below"));
  EXPECT_EQ(inode(folder_.Path("dir/link/../../dir")), InodeAt("dir"));
  ASSERT_EQ(
      ::symlink(folder_.Path("dir").c_str(), folder_.Path("absolute").c_str()),
      0);
  EXPECT_EQ(inode(folder_.Path("absolute/below")), InodeAt("dir/below"));
  EXPECT_EQ(OpenNamedFolder(folder_.Path("outside")).status().error(), ENOTDIR);
  EXPECT_EQ(OpenNamedFolder(folder_.Path("none")).status().error(), ENOENT);
  EXPECT_EQ(OpenNamedFolder("").status().error(), ENOENT);
  ASSERT_EQ(::symlink("circle", folder_.Path("circle").c_str()), 0);
  EXPECT_EQ(OpenNamedFolder(folder_.Path("circle")).status().error(), ELOOP);
  if (::geteuid() != 0) return;
  ASSERT_EQ(::lchown(folder_.Path("dir/link").c_str(), 4321, 4321), 0);
  const auto others = OpenNamedFolder(folder_.Path("dir/link"));
  EXPECT_EQ(others.status().code(), StatusCode::kInvalid);
  EXPECT_NE(others.status().message().find("belongs to user 4321"),
            std::string::npos);
}

TEST_F(OpenBeneathTest, ModesAreSetThroughDescriptorsAndNotOfLinks) {
  const UniqueFd file(OpenBeneath(root_.get(), "below/file", O_PATH));
  ASSERT_TRUE(file);
  EXPECT_EQ(ChmodFd(file.get(), 0401), 0);
  struct stat st {};
  ASSERT_EQ(::stat(folder_.Path("dir/below/file").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode, S_IFREG | 0401u);
  const UniqueFd link(OpenBeneath(root_.get(), "link", O_PATH | O_NOFOLLOW));
  ASSERT_TRUE(link);
  EXPECT_EQ(ChmodFd(link.get(), 0401), -1);
  EXPECT_EQ(errno, EOPNOTSUPP);
  ASSERT_EQ(::stat(folder_.Path("dir/below").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode, S_IFDIR | 0755u);
  EXPECT_EQ(ChmodFd(-1, 0401), -1);
  EXPECT_EQ(FdPath(0), "/proc/self/fd/0");
  EXPECT_EQ(FdPath(2147483647), "/proc/self/fd/2147483647");
}

// More than a name can have is cut, not written past the end.
TEST(NameTextTest, Malicious_LongNamesAreCut) {
  EXPECT_STREQ(NameText("").c_str(), "");
  EXPECT_STREQ(NameText("a b").c_str(), "a b");
  EXPECT_EQ(std::string(NameText(std::string(255, 'x')).c_str()).size(), 255u);
  EXPECT_EQ(std::string(NameText(std::string(999, 'x')).c_str()).size(), 255u);
}

}  // namespace
}  // namespace tracefs::replay
