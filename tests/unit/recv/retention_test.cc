// Which stored traces go, and which must stay.
#include "tracefs/recv/retention.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <set>

#include "tracefs/base/unique_fd.h"

namespace tracefs {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Three hosts, an hour between any two files.
const std::vector<KeptTrace> kTraces = {
    {"cn-a.1.trace", 100, 3600},  {"cn-b.2.trace", 200, 7200},
    {"3.trace", 300, 10800},      {"cn-a.4.trace", 400, 14400},
    {"cn-b.5.trace", 500, 18000},
};

std::vector<std::string> Removed(const RetentionRules& rules,
                                 const std::set<std::string>& held = {},
                                 uint64_t free = 1000) {
  std::vector<std::string> names;
  for (const KeptTrace& trace :
       ChooseToRemove(kTraces, rules, 18000, free, 10000,
                      [&](const auto& name) { return held.contains(name); })) {
    names.push_back(trace.name);
  }
  return names;
}

TEST(RetentionTest, WithoutRulesAllStays) {
  EXPECT_FALSE(RetentionRules{}.any());
  EXPECT_THAT(Removed({}), IsEmpty());
}

TEST(RetentionTest, WhatIsOlderThanTheAgeGoes) {
  EXPECT_THAT(Removed({.max_age_s = 7200}),
              ElementsAre("cn-a.1.trace", "cn-b.2.trace"));
}

TEST(RetentionTest, TheOldestGoUntilTheRestFits) {
  // 1500 bytes in all.
  EXPECT_THAT(Removed({.max_bytes = 1200}),
              ElementsAre("cn-a.1.trace", "cn-b.2.trace"));
  EXPECT_THAT(Removed({.max_bytes = 1500}), IsEmpty());
}

TEST(RetentionTest, ASenderPaysForItselfAlone) {
  EXPECT_THAT(Removed({.max_sender_bytes = 600}), ElementsAre("cn-b.2.trace"));
  // Nobody knows whose "3.trace" is.
  EXPECT_THAT(Removed({.max_sender_bytes = 250}),
              ElementsAre("cn-a.1.trace", "cn-b.2.trace", "cn-a.4.trace",
                          "cn-b.5.trace"));
}

TEST(RetentionTest, RoomIsMadeOnTheDisk) {
  EXPECT_THAT(Removed({.min_free_bytes = 1250}),
              ElementsAre("cn-a.1.trace", "cn-b.2.trace"));
  EXPECT_THAT(Removed({.min_free_percent = 11}), ElementsAre("cn-a.1.trace"));
  EXPECT_THAT(Removed({.min_free_percent = 10}), IsEmpty());
}

TEST(RetentionTest, WhoseSenderIsConnectedStays) {
  EXPECT_THAT(Removed({.max_age_s = 1}, {"cn-a.1.trace", "3.trace"}),
              ElementsAre("cn-b.2.trace", "cn-a.4.trace"));
}

TEST(RetentionTest, SendersAreKnownByTheNameOfTheFile) {
  EXPECT_EQ(SenderOf("cn-host.example.0f.trace"), "cn-host.example");
  EXPECT_EQ(SenderOf("uid-1000.0f.trace.rest-1"), "uid-1000");
  EXPECT_EQ(SenderOf("0f.trace"), "");
  EXPECT_EQ(SenderOf("cn-"), "");
  EXPECT_EQ(SenderOf("cn-.trace"), "");
}

TEST(RetentionTest, FilesOfADirectoryAreRemovedButThoseInUse) {
  std::string folder = testing::TempDir() + "retention.XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const UniqueFd directory(
      ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (const char* name : {"old.trace", "used.trace", "notes"}) {
    const UniqueFd file(
        ::openat(directory.get(), name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    const timespec times[2] = {{1000, 0}, {1000, 0}};
    ASSERT_EQ(::futimens(file.get(), times), 0);
  }
  std::mutex mu;
  std::condition_variable came;
  std::vector<std::string> removed;
  {
    Retention retention(directory.get(), {.max_age_s = 60},
                        [&](const KeptTrace& trace) {
                          const std::lock_guard lock(mu);
                          removed.push_back(trace.name);
                          came.notify_all();
                        });
    retention.Hold("used.trace");
    retention.Start();
    {
      std::unique_lock lock(mu);
      came.wait_for(lock, std::chrono::seconds(60),
                    [&] { return !removed.empty(); });
    }
    retention.Release("used.trace");
    retention.Hurry();
    std::unique_lock lock(mu);
    came.wait_for(lock, std::chrono::seconds(60),
                  [&] { return removed.size() == 2; });
  }
  EXPECT_THAT(removed, ElementsAre("old.trace", "used.trace"));
  EXPECT_EQ(::faccessat(directory.get(), "notes", F_OK, 0), 0);
  ::unlinkat(directory.get(), "notes", 0);
  EXPECT_EQ(::rmdir(folder.c_str()), 0);
}

}  // namespace
}  // namespace tracefs
