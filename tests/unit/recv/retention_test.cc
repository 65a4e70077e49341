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
#include "tracefs/recv/kept_places.h"
#include "tracefs/recv/sender_shares.h"

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

TEST(RetentionTest, WhoeverHasMostPaysUntilTheRestFits) {
  // 1500 bytes in all: b has 700, a 500.
  EXPECT_THAT(Removed({.max_bytes = 1400}), ElementsAre("cn-b.2.trace"));
  EXPECT_THAT(Removed({.max_bytes = 1250}),
              ElementsAre("cn-b.2.trace", "cn-b.5.trace"));
  EXPECT_THAT(Removed({.max_bytes = 1500}), IsEmpty());
}

TEST(RetentionTest, ASenderPaysForItselfAlone) {
  EXPECT_THAT(Removed({.max_sender_bytes = 600}), ElementsAre("cn-b.2.trace"));
  // Nobody knows whose "3.trace" is.
  EXPECT_THAT(Removed({.max_sender_bytes = 250}),
              ElementsAre("cn-a.1.trace", "cn-a.4.trace", "cn-b.2.trace",
                          "cn-b.5.trace"));
}

// Names and sizes, from the oldest on.
std::vector<std::string> RemovedOf(
    const std::vector<std::pair<std::string, uint64_t>>& files,
    const RetentionRules& rules, const std::set<std::string>& held = {}) {
  std::vector<KeptTrace> all;
  for (const auto& [name, bytes] : files) {
    all.push_back({name, bytes, static_cast<int64_t>(all.size())});
  }
  std::vector<std::string> names;
  for (const KeptTrace& trace :
       ChooseToRemove(all, rules, 100, 0, 1000,
                      [&](const auto& name) { return held.contains(name); })) {
    names.push_back(trace.name);
  }
  return names;
}

TEST(RetentionTest, Malicious_AnEndlessTraceTakesNothingFromTheShareOfOthers) {
  const std::vector<std::pair<std::string, uint64_t>> files = {
      {"cn-a.1.trace", 40},
      {"cn-b.2.trace", 70},
      {"cn-b.3.trace", 40},
      {"cn-c.4.trace", 900}};
  // c has too much, and it is in use: b, with more than a third, pays some.
  EXPECT_THAT(RemovedOf(files, {.max_bytes = 300}, {"cn-c.4.trace"}),
              ElementsAre("cn-b.2.trace"));
  EXPECT_THAT(RemovedOf(files, {.max_bytes = 300}),
              ElementsAre("cn-c.4.trace"));
}

TEST(RetentionTest, Malicious_AddressesTogetherHaveTheShareOfOneThatIsKnown) {
  std::vector<std::pair<std::string, uint64_t>> files = {
      {"cn-a.1.trace", 50}, {"ip-10.0.0.1.2.trace", 9}};
  for (int i = 0; i < 50; ++i) {
    files.emplace_back("ip-10.0.1." + std::to_string(i) + ".3.trace", 10);
  }
  // All but five of the many; not who has less than they, nor who is known.
  const std::vector<std::string> gone = RemovedOf(files, {.max_bytes = 110});
  EXPECT_EQ(gone.size(), 45u);
  for (const std::string& name : gone) {
    EXPECT_TRUE(name.starts_with("ip-10.0.1.")) << name;
  }
}

TEST(RetentionTest, Malicious_AFloodOfOneAddressPaysForItself) {
  std::vector<std::pair<std::string, uint64_t>> files = {
      {"ip-10.0.0.1.1.trace", 90}};
  for (int i = 10; i < 60; ++i) {
    files.emplace_back("ip-10.0.0.2." + std::to_string(i) + ".trace", 10);
  }
  const std::vector<std::string> gone = RemovedOf(files, {.max_bytes = 200});
  EXPECT_EQ(gone.size(), 39u);
  EXPECT_EQ(gone.front(), "ip-10.0.0.2.10.trace");
}

TEST(RetentionTest, AnOldTraceInUseCostsNoneThatIsNotOld) {
  EXPECT_THAT(RemovedOf({{"cn-a.1.trace", 1}, {"cn-a.2.trace", 1}},
                        {.max_age_s = 99}, {"cn-a.1.trace"}),
              IsEmpty());
}

TEST(KeptPlacesTest, Malicious_OneSenderCannotHaveAllThePlaces) {
  KeptPlaces places(10, 0);
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(places.MayAddFile("ip-1"));
    places.AddFile("ip-1." + std::to_string(i) + ".trace");
  }
  EXPECT_FALSE(places.MayAddFile("ip-1"));
  // Two share what addresses may have; one who is known has as much again.
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(places.MayAddFile("ip-2"));
    places.AddFile("ip-2." + std::to_string(i) + ".trace");
  }
  EXPECT_FALSE(places.MayAddFile("ip-2"));
  // However many addresses there are.
  for (int i = 3; i < 100; ++i) {
    const std::string sender = "ip-" + std::to_string(i);
    if (places.MayAddFile(sender)) places.AddFile(sender + ".0.trace");
  }
  EXPECT_FALSE(places.MayAddFile("ip-100"));
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(places.MayAddFile("cn-a"));
    places.AddFile("cn-a." + std::to_string(i) + ".trace");
  }
  EXPECT_FALSE(places.MayAddFile("cn-a"));
  places.RemoveFile("cn-a.0.trace");
  EXPECT_TRUE(places.MayAddFile("cn-a"));
}

TEST(KeptPlacesTest, Malicious_OneWhoNeverEndsMustWaitForItsOldestToGo) {
  KeptPlaces places(10, 800);
  EXPECT_FALSE(places.AddBytes("ip-1", 900));
  EXPECT_FALSE(places.IsOver("ip-1"));
  EXPECT_TRUE(places.AddBytes("ip-1", 1));
  EXPECT_TRUE(places.IsOver("ip-1"));
  // Others have their share, and who is known answers for what it does.
  EXPECT_FALSE(places.IsOver("ip-2"));
  places.AddBytes("cn-a", 10'000);
  EXPECT_FALSE(places.IsOver("cn-a"));
  places.Look({{"ip-1.1.trace", 500, 0}});
  EXPECT_FALSE(places.IsOver("ip-1"));
}

TEST(RetentionTest, RoomIsMadeOnTheDisk) {
  EXPECT_THAT(Removed({.min_free_bytes = 1250}),
              ElementsAre("cn-b.2.trace", "cn-b.5.trace"));
  EXPECT_THAT(Removed({.min_free_percent = 11}), ElementsAre("cn-b.2.trace"));
  EXPECT_THAT(Removed({.min_free_percent = 10}), IsEmpty());
}

TEST(RetentionTest, WhoseSenderIsConnectedStays) {
  EXPECT_THAT(Removed({.max_age_s = 1}, {"cn-a.1.trace", "3.trace"}),
              ElementsAre("cn-b.2.trace", "cn-a.4.trace"));
}

TEST(RetentionTest, SendersAreKnownByTheNameOfTheFile) {
  EXPECT_EQ(SenderOf("cn-host.example.0f.trace"), "cn-host.example");
  EXPECT_EQ(SenderOf("uid-1000.0f.trace.rest-1"), "uid-1000");
  EXPECT_EQ(SenderOf("ip-10.0.0.1.0f.trace"), "ip-10.0.0.1");
  EXPECT_EQ(SenderOf("ip-2001-db8--.0f.trace"), "ip-2001-db8--");
  EXPECT_EQ(SenderOf("cn-web.traces.example.0f.trace"),
            "cn-web.traces.example");
  EXPECT_EQ(SenderOf("cn-a.trace.0f.trace.rest-1"), "cn-a.trace");
  EXPECT_EQ(TraceNameOf("cn-a.trace.0f.trace.rest-1"), "cn-a.trace.0f.trace");
  EXPECT_EQ(TraceNameOf("cn-a"), "");
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
    EXPECT_TRUE(retention.Start().ok());
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
