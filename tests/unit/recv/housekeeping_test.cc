// Which days of a fleet's store go, and that a trace goes on after them.
#include "tracefs/recv/fleet/housekeeping.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/recv/fleet_trace.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/format/frame.h"
#include "tracefs/recv/fleet/store.h"

namespace tracefs {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr int64_t kDayS = 86'400;

class HousekeepingTest : public testing::Test {
 protected:
  HousekeepingTest() {
    std::string path = testing::TempDir() + "keep-XXXXXX";
    root_ = ::mkdtemp(path.data());
    fd_.Reset(::open(root_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  ~HousekeepingTest() override { fs::remove_all(root_); }

  void Age(const fs::path& path, int64_t at_s) {
    const timespec times[2] = {{at_s, 0}, {at_s, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }
  void Put(const std::string& host, const std::string& day, int64_t at_s,
           size_t bytes = 8192) {
    const fs::path folder = root_ / ("host=" + host) / ("date=" + day);
    fs::create_directories(folder);
    std::ofstream(folder / "a.parquet") << std::string(bytes, 'x');
    Age(folder / "a.parquet", at_s);
  }
  std::vector<std::string> Days() const {
    std::vector<std::string> names;
    for (const KeptTrace& day : ListDays(fd_.get())) names.push_back(day.name);
    return names;
  }
  void Turn(const RetentionRules& rules, int64_t now_s) {
    Housekeeping(fd_.get(),
                 {.merge = {.format = "", .every_s = 0}, .rules = rules},
                 state_)
        .Turn(now_s);
  }

  fs::path root_;
  UniqueFd fd_;
  FleetState state_;
};

TEST_F(HousekeepingTest, DaysOlderThanTheAgeGo) {
  Put("a", "2026-01-01", 10 * kDayS);
  Put("a", "2026-01-02", 11 * kDayS);
  Put("b", "2026-01-01", 10 * kDayS + 5);
  Turn({.max_age_s = kDayS}, 11 * kDayS + 5);
  EXPECT_THAT(Days(),
              ElementsAre("host=b/date=2026-01-01", "host=a/date=2026-01-02"));
  EXPECT_EQ(state_.removed, 1u);
  EXPECT_GE(state_.removed_bytes, 8192u);
}

TEST_F(HousekeepingTest, AHostPaysForItselfAlone) {
  Put("a", "2026-01-01", 10 * kDayS, 100'000);
  Put("b", "2026-01-01", 9 * kDayS, 10'000);
  Put("a", "2026-01-02", 11 * kDayS, 100'000);
  Turn({.max_sender_bytes = 150'000}, 12 * kDayS);
  EXPECT_THAT(Days(),
              ElementsAre("host=b/date=2026-01-01", "host=a/date=2026-01-02"));
}

TEST_F(HousekeepingTest, TheOldestGoUntilTheRestFits) {
  Put("a", "2026-01-01", 10 * kDayS, 100'000);
  Put("b", "2026-01-01", 9 * kDayS, 100'000);
  Put("a", "2026-01-02", 11 * kDayS, 100'000);
  Turn({.max_bytes = 150'000}, 12 * kDayS);
  EXPECT_THAT(Days(), ElementsAre("host=a/date=2026-01-02"));
}

TEST_F(HousekeepingTest, WhatIsWrittenToStays) {
  Put("a", "2026-01-01", 10 * kDayS, 100'000);
  Turn({.max_bytes = 1}, 10 * kDayS + 3599);
  EXPECT_THAT(Days(), ElementsAre("host=a/date=2026-01-01"));
  Turn({.max_bytes = 1}, 10 * kDayS + 3600);
  EXPECT_THAT(Days(), IsEmpty());
}

TEST_F(HousekeepingTest, OneAtATimeKeepsHouse) {
  Put("a", "2026-01-01", 10 * kDayS);
  const UniqueFd other(::open((root_ / ".keeper.lock").c_str(),
                              O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::flock(other.get(), LOCK_EX), 0);
  Turn({.max_age_s = kDayS}, 20 * kDayS);
  EXPECT_THAT(Days(), ElementsAre("host=a/date=2026-01-01"));
}

// A trace that goes on when retention has taken all that was there of it.
class ResumedTest : public HousekeepingTest {
 protected:
  FleetBlock Block(size_t i, const std::string& day) {
    return trace_.Block(i, day);
  }
  static std::vector<uint64_t> Commit(FleetStore* store) {
    std::vector<uint64_t> done;
    std::vector<FleetStore::Refused> refused;
    EXPECT_TRUE(store->Commit(false, &done, &refused).ok());
    EXPECT_TRUE(refused.empty());
    return done;
  }
  std::string Stored(const std::string& day) {
    std::ifstream in(root_ / "host=web1" / ("date=" + day) /
                         (format::SerialText(trace_.serial()) + ".trace"),
                     std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  // Whole and readable: block 0 is there, then `i`.
  void ExpectGoesOn(const std::string& day, size_t i) {
    const std::string stored = Stored(day);
    EXPECT_TRUE(stored.starts_with(Block(0, day).preamble));
    EXPECT_NE(stored.find(Block(0, day).frame), stored.npos);
    EXPECT_TRUE(stored.ends_with(Block(i, day).frame));
  }

  test::FleetTrace trace_;
};

TEST_F(ResumedTest, ByTheReceiverThatHadItOpen) {
  const auto store = MakeTraceStore(fd_.get(), {});
  for (size_t i = 0; i < 3; ++i) store->Add(Block(i, "2026-01-01"));
  ASSERT_THAT(Commit(store.get()), ElementsAre(0, 1, 2));
  ASSERT_TRUE(RemoveDay(fd_.get(), "host=web1/date=2026-01-01").ok());
  EXPECT_THAT(Days(), IsEmpty());
  store->Add(Block(3, "2026-01-01"));
  store->Add(Block(2, "2026-01-01"));  // came once more
  EXPECT_THAT(Commit(store.get()), testing::UnorderedElementsAre(2, 3));
  ExpectGoesOn("2026-01-01", 3);
  EXPECT_EQ(store->counts().gaps, 0u);
  EXPECT_EQ(store->counts().doubled, 1u);
}

TEST_F(ResumedTest, ByOneThatKnowsNothingOfIt) {
  {
    const auto store = MakeTraceStore(fd_.get(), {});
    for (size_t i = 0; i < 3; ++i) store->Add(Block(i, "2026-01-01"));
    ASSERT_THAT(Commit(store.get()), ElementsAre(0, 1, 2));
  }
  ASSERT_TRUE(RemoveDay(fd_.get(), "host=web1/date=2026-01-01").ok());
  const auto store = MakeTraceStore(fd_.get(), {});
  store->Add(Block(4, "2026-01-09"));
  store->Add(Block(5, "2026-01-09"));
  EXPECT_THAT(Commit(store.get()), ElementsAre(4, 5));
  ExpectGoesOn("2026-01-09", 5);
  EXPECT_EQ(store->counts().gaps, 0u);
}

TEST_F(ResumedTest, ADayBeforeGoesWithoutHeads) {
  const auto store = MakeTraceStore(fd_.get(), {});
  for (size_t i = 0; i < 2; ++i) store->Add(Block(i, "2026-01-01"));
  for (size_t i = 2; i < 4; ++i) store->Add(Block(i, "2026-01-02"));
  ASSERT_THAT(Commit(store.get()), ElementsAre(0, 1, 2, 3));
  ASSERT_TRUE(RemoveDay(fd_.get(), "host=web1/date=2026-01-01").ok());
  EXPECT_FALSE(fs::exists(root_ / "host=web1" / ".heads"));
  store->Add(Block(4, "2026-01-02"));
  EXPECT_THAT(Commit(store.get()), ElementsAre(4));
  ExpectGoesOn("2026-01-02", 4);
}

}  // namespace
}  // namespace tracefs
