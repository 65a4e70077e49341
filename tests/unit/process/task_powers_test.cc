// What a task may do beyond its ids, from texts of /proc and of real tasks.
#include "tracefs/process/task_powers.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tracefs/base/unique_fd.h"

namespace tracefs {
namespace {

std::string Status(const std::string& groups, const std::string& effective) {
  return "Name:\tcat\nUmask:\t0022\nTgid:\t42\nUid:\t1\t2\t3\t1000\n"
         "Gid:\t1\t2\t3\t1001\nFDSize:\t64\nGroups:\t" +
         groups + " \nCapPrm:\tffffffffffffffff\nCapEff:\t" + effective + "\n";
}

TEST(ParsePowersTest, TakesGroupsAndCapabilities) {
  const auto powers =
      ParsePowers(Status("5 60 4294967294", "000000000000000a"), 1000, 1001);
  ASSERT_TRUE(powers);
  EXPECT_EQ(powers->groups, (std::vector<gid_t>{5, 60, 4294967294}));
  EXPECT_EQ(powers->capabilities, 0xau);
}

TEST(ParsePowersTest, ATaskOfOtherIdsIsNotTheCaller) {
  const std::string status = Status("", "0000000000000000");
  EXPECT_TRUE(ParsePowers(status, 1000, 1001));
  EXPECT_FALSE(ParsePowers(status, 2, 1001)) << "the effective one";
  EXPECT_FALSE(ParsePowers(status, 1000, 2));
}

TEST(ParsePowersTest, Malicious_CutTextsGiveNothing) {
  const std::string status = Status("5 6", "000000000000000a");
  for (size_t size = 0; size + 2 < status.size(); ++size) {
    const auto powers = ParsePowers(status.substr(0, size), 1000, 1001);
    if (powers) {
      EXPECT_GT(size, status.find("CapEff")) << size;
    }
  }
}

TEST(IdRangesTest, ContainWhatTheyMap) {
  const IdRanges ranges =
      IdRanges::Parse("         0     100000      65536\n     65536   7   1\n");
  EXPECT_FALSE(ranges.Contains(0));
  EXPECT_FALSE(ranges.Contains(99999));
  EXPECT_TRUE(ranges.Contains(100000));
  EXPECT_TRUE(ranges.Contains(165535));
  EXPECT_FALSE(ranges.Contains(165536));
  EXPECT_TRUE(ranges.Contains(7));
  EXPECT_FALSE(ranges.Contains(8));
  EXPECT_FALSE(ranges.ContainAll());
}

TEST(IdRangesTest, TheFirstNamespaceMapsAll) {
  EXPECT_TRUE(
      IdRanges::Parse("         0          0 4294967295\n").ContainAll());
  EXPECT_FALSE(IdRanges::Parse("0 0 4294967294\n").ContainAll());
  EXPECT_FALSE(IdRanges::Parse("0 1 4294967295\n").ContainAll());
}

TEST(IdRangesTest, Malicious_WhatIsNoMapMapsNothing) {
  for (const char* text : {"", "\n", "0\n", "0 0\n", "a b c\n", "0 0 -1\n"}) {
    const IdRanges ranges = IdRanges::Parse(text);
    EXPECT_FALSE(ranges.Contains(0)) << text;
    EXPECT_FALSE(ranges.ContainAll()) << text;
  }
}

TEST(ReadPowersTest, ReadsThisTask) {
  const UniqueFd proc(::open("/proc", O_PATH | O_DIRECTORY));
  const auto tid = static_cast<uint32_t>(::syscall(SYS_gettid));
  const auto powers =
      ReadPowers(proc.get(), tid, ::geteuid(), ::getegid(), ~uint64_t{0});
  ASSERT_TRUE(powers);
  EXPECT_EQ(static_cast<int>(powers->groups.size()), ::getgroups(0, nullptr));
  if (powers->capabilities != 0) {
    EXPECT_TRUE(powers->Over(::geteuid(), ::getegid()));
  }
}

TEST(ReadPowersTest, NobodyHasNone) {
  const UniqueFd proc(::open("/proc", O_PATH | O_DIRECTORY));
  EXPECT_FALSE(ReadPowers(proc.get(), 0, 0, 0, 0));
  EXPECT_FALSE(ReadPowers(proc.get(), 0xffffffff, 0, 0, 0));
}

}  // namespace
}  // namespace tracefs
