// Small files of tables that become larger ones: which, and what a reader sees
// while it happens, and when whoever does it is killed.
#include <fcntl.h>
#include <fnmatch.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <random>
#include <thread>

#include "tracefs/base/unique_fd.h"
#include "tracefs/recv/fleet/merge.h"
#include "tracefs/recv/fleet/places.h"
#include "tracefs/recv/fleet/table_name.h"

namespace tracefs {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr int64_t kHour = 3600;
constexpr int64_t kBegin = 450'000 * kHour;
constexpr char kDay[] = "date=2026-01-31";
const std::string kOne(32, '1');
const std::string kTwo(32, '2');

class FleetMergeTest : public testing::Test {
 protected:
  FleetMergeTest() {
    std::string path = testing::TempDir() + "merge-XXXXXX";
    root_ = ::mkdtemp(path.data());
    day_ = root_ / "host=web1" / kDay;
    fs::create_directories(day_);
    fd_.Reset(::open(root_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  ~FleetMergeTest() override { fs::remove_all(root_); }

  // A file whose lines are the numbers of its blocks.
  void Put(const std::string& serial, uint64_t first, uint64_t last,
           int64_t at_s = kBegin) {
    const fs::path path = day_ / TableName{serial, first, last, "jsonl"}.Text();
    std::ofstream out(path);
    for (uint64_t n = first; n <= last; ++n) out << serial << n << '\n';
    out.close();
    const timespec times[2] = {{at_s, 0}, {at_s, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }

  MergeCounts Merge(int64_t now_s = kBegin + 2 * kHour, bool exchanges = true) {
    Merger merger(fd_.get(), {.format = "jsonl", .exchanges = exchanges});
    MergeCounts counts;
    const Status status = merger.MergeHost("web1", now_s, &counts);
    EXPECT_TRUE(status.ok()) << status.message();
    return counts;
  }

  // "1:0-9" of files of serial 1, in order.
  std::vector<std::string> Files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(day_)) {
      const auto name = TableName::Parse(entry.path().filename().string());
      names.push_back(name ? name->serial.substr(0, 1) + ':' +
                                 std::to_string(name->first) + '-' +
                                 std::to_string(name->last)
                           : entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  ino_t Folder() const {
    struct stat st = {};
    ::stat(day_.c_str(), &st);
    return st.st_ino;
  }

  // What a reader gets, who lists the folder and then opens what it has: how
  // often each line is there. Nothing, if a file was gone by then.
  std::optional<std::map<std::string, int>> Read() const {
    std::vector<fs::path> list;
    const auto folder = Folder();
    for (const auto& entry : fs::directory_iterator(day_)) {
      const std::string name = entry.path().filename();
      if (name[0] != '.') list.push_back(entry.path());
    }
    // Its minute is over at once here: what was listed may be half gone.
    if (Folder() != folder) return std::nullopt;
    std::map<std::string, int> lines;
    for (const fs::path& path : list) {
      std::ifstream in(path);
      if (!in) return std::nullopt;
      for (std::string line; std::getline(in, line);) ++lines[line];
    }
    return lines;
  }

  fs::path root_;
  fs::path day_;
  UniqueFd fd_;
};

// Whoever asks for all tables of a day, as DuckDB does, hidden ones, too.
TEST(FleetPlacesTest, NoPatternForTablesFindsOneThatIsBeingWritten) {
  for (const std::string name : {"a.parquet", "a.jsonl", "a.csv"}) {
    const std::string pattern = "*" + name.substr(1);
    EXPECT_EQ(::fnmatch(pattern.c_str(), name.c_str(), 0), 0);
    EXPECT_NE(::fnmatch(pattern.c_str(), TemporaryNameOf(name).c_str(), 0), 0);
  }
}

TEST_F(FleetMergeTest, WhatFollowsEachOtherBecomesOneFile) {
  Put(kOne, 0, 3);
  Put(kOne, 4, 4);
  Put(kOne, 5, 9);
  const auto before = Read();
  const MergeCounts counts = Merge();
  EXPECT_EQ(counts.merged, 3u);
  EXPECT_EQ(counts.made, 1u);
  EXPECT_THAT(Files(), ElementsAre("1:0-9"));
  EXPECT_EQ(Read(), before);
}

TEST_F(FleetMergeTest, WhatDoesNotFollowStaysApart) {
  Put(kOne, 0, 3);
  Put(kOne, 5, 6);  // block 4 may come yet
  Put(kOne, 7, 8);
  Put(kTwo, 9, 10);
  Merge();
  EXPECT_THAT(Files(), ElementsAre("1:0-3", "1:5-8", "2:9-10"));
}

TEST_F(FleetMergeTest, OnlyWhatIsOverIsMerged) {
  Put(kOne, 0, 1, kBegin);
  Put(kOne, 2, 3, kBegin + kHour - 1);
  Put(kOne, 4, 5, kBegin + kHour);
  Put(kOne, 6, 7, kBegin + kHour + 1);
  // A quarter of the time is for those that come late.
  EXPECT_EQ(Merge(kBegin + kHour + kHour / 4 - 1).made, 0u);
  EXPECT_EQ(Merge(kBegin + kHour + kHour / 4).made, 1u);
  EXPECT_THAT(Files(), ElementsAre("1:0-3", "1:4-5", "1:6-7"));
}

TEST_F(FleetMergeTest, FewBehindALargeOneWaitUntilTheyAreAsMany) {
  Put(kOne, 0, 9);
  Put(kOne, 10, 99);
  Put(kOne, 100, 104);
  Put(kOne, 105, 105);
  EXPECT_EQ(Merge().made, 0u);
  Put(kOne, 106, 111);
  EXPECT_EQ(Merge().made, 1u);
  EXPECT_THAT(Files(), ElementsAre("1:0-9", "1:10-99", "1:100-111"));
  Put(kOne, 112, 199);
  EXPECT_EQ(Merge(::time(nullptr) + kHour).made, 1u);
  EXPECT_THAT(Files(), ElementsAre("1:0-199"));
}

TEST_F(FleetMergeTest, NoneBecomesLargerThanTheMost) {
  for (uint64_t n = 0; n < 100; ++n) Put(kOne, n, n);
  Merger merger(fd_.get(), {.format = "jsonl", .most_bytes = 35 * 10});
  MergeCounts counts;
  ASSERT_TRUE(merger.MergeHost("web1", kBegin + 2 * kHour, &counts).ok());
  // Lines of 34 and 35 bytes.
  EXPECT_THAT(Files(), testing::SizeIs(10));
}

TEST_F(FleetMergeTest, TheFolderBeforeStaysForAMinute) {
  Put(kOne, 0, 1);
  Put(kOne, 2, 3);
  Merge();
  const fs::path old = root_ / "host=web1" / (std::string(".merge-") + kDay);
  EXPECT_TRUE(fs::exists(old / TableName{kOne, 0, 1, "jsonl"}.Text()));
  Merge(::time(nullptr) + 50);
  EXPECT_TRUE(fs::exists(old));
  Merge(::time(nullptr) + 62);
  EXPECT_FALSE(fs::exists(old));
  EXPECT_THAT(Files(), ElementsAre("1:0-3"));
}

TEST_F(FleetMergeTest, WithoutExchangesItIsTheSameInTheEnd) {
  Put(kOne, 0, 1);
  Put(kOne, 2, 3);
  Put(kTwo, 2, 3);
  const auto before = Read();
  Merge(kBegin + 2 * kHour, /*exchanges=*/false);
  EXPECT_THAT(Files(), ElementsAre("1:0-3", "2:2-3"));
  EXPECT_EQ(Read(), before);
  EXPECT_FALSE(
      fs::exists(root_ / "host=web1" / (std::string(".merge-") + kDay)));
}

TEST_F(FleetMergeTest, AHiddenFileIsBroughtToItsEnd) {
  Put(kOne, 0, 3);
  fs::rename(day_ / TableName{kOne, 0, 3, "jsonl"}.Text(),
             day_ / (std::string(kMergedPrefix) +
                     TableName{kOne, 0, 3, "jsonl"}.Text()));
  Put(kOne, 2, 3);  // 0-1 is gone already
  Put(kOne, 4, 5);
  Merge(kBegin);
  EXPECT_THAT(Files(), ElementsAre("1:0-3", "1:4-5"));
  EXPECT_EQ(Read()->size(), 6u);
}

// In another process, which is killed at some moment; again and again, until
// one of them comes to its end.
class KilledMerger : public FleetMergeTest,
                     public testing::WithParamInterface<bool> {};

TEST_P(KilledMerger, LosesAndDoublesNothing) {
  std::mt19937 draw(21);
  for (int round = 0; round < 15; ++round) {
    for (uint64_t n = 0; n < 40; ++n) Put(kOne, n * 3, n * 3 + 2);
    for (uint64_t n = 0; n < 5; ++n) Put(kTwo, n * 2, n * 2);
    const auto whole = *Read();
    std::atomic<bool> done = false;
    std::string wrong;
    // Who reads meanwhile sees all, each line once, or that a file is gone;
    // without exchanges some may be missing.
    std::thread reader([&] {
      while (!done) {
        const auto seen = Read();
        if (!seen) continue;
        for (const auto& [line, count] : *seen) {
          if (count != 1) wrong = line + " is there twice";
        }
        if (GetParam() && *seen != whole) wrong = "something is missing";
      }
    });
    for (int attempt = 0;; ++attempt) {
      const pid_t child = ::fork();
      if (child == 0) {
        Merger merger(fd_.get(), {.format = "jsonl", .exchanges = GetParam()});
        MergeCounts counts;
        static_cast<void>(
            merger.MergeHost("web1", ::time(nullptr) + 2 * kHour, &counts));
        ::_exit(0);
      }
      // The last one may end.
      if (attempt < 8) {
        ::usleep(draw() % 6000);
        ::kill(child, SIGKILL);
      }
      int status = 0;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      if (attempt >= 8) break;
    }
    done = true;
    reader.join();
    EXPECT_EQ(wrong, "");
    EXPECT_EQ(*Read(), whole);
    EXPECT_THAT(Files(), testing::Contains("1:0-119"));
    fs::remove_all(root_ / "host=web1");
    fs::create_directories(day_);
  }
}

INSTANTIATE_TEST_SUITE_P(Fleet, KilledMerger, testing::Bool(),
                         [](const auto& one) {
                           return one.param ? "WithExchanges" : "OneByOne";
                         });

}  // namespace
}  // namespace tracefs
