// What strace wrote, as operations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/import/imported.h"
#include "tracefs/import/line_reader.h"

namespace tracefs::import {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Key;
using testing::Not;

Imported Strace(std::string_view text) {
  return Import(Foreign::kStrace, text);
}

TEST(StraceImportTest, ReadsAndWritesHaveTheOffsetsOfTheirFile) {
  const Imported made = Strace(R"(
1 1.000001 openat(AT_FDCWD</w>, "a", O_RDWR|O_CREAT|O_EXCL, 0666) = 3</w/a> <0.000001>
1 1.000002 write(3</w/a>, "hello", 5) = 5 <0.000001>
1 1.000003 dup(3</w/a>) = 4</w/a> <0.000001>
1 1.000004 write(4</w/a>, "more", 4) = 4 <0.000001>
1 1.000005 lseek(3</w/a>, 2, SEEK_SET) = 2 <0.000001>
1 1.000006 read(4</w/a>, "llo", 3) = 3 <0.000001>
1 1.000007 pwrite64(3</w/a>, "x", 1, 20) = 1 <0.000001>
1 1.000008 close(3</w/a>) = 0 <0.000001>
1 1.000009 readv(4</w/a>, [{iov_base="m", iov_len=1}, {iov_base="ore", iov_len=9}], 2) = 4 <0.000001>
1 1.000010 close(4</w/a>) = 0 <0.000001>
)");
  ASSERT_TRUE(made.status.ok()) << made.status.message();
  EXPECT_THAT(Main(made),
              ElementsAre("create /a", "write /a 0+5=5 'hello'",
                          "write /a 5+4=4 'more'", "read /a 2+3=3 'llo'",
                          "write /a 20+1=1 'x'", "read /a 5+10=4 'more'",
                          "release /a"));
  EXPECT_TRUE(made.counts.left_out.counts().empty());
}

TEST(StraceImportTest, UnfinishedCallsAreResumed) {
  const Imported made = Strace(R"(
1 1.000001 mkdir("d",  <unfinished ...>
2 1.000002 mkdir("e", 0755) = 0 <0.000001>
1 1.000003 <... mkdir resumed>0700) = 0 <0.000009>
1 1.000004 write(3</w/x>,  <unfinished ...>
)");
  EXPECT_THAT(Main(made), ElementsAre("mkdir /d", "mkdir /e"));
}

// strace -r: each line has the time since the one before, of whatever kind.
TEST(StraceImportTest, TimesSinceTheLineBeforeAreSummed) {
  const Imported made = Strace(R"(
1      0.000000 mkdir("a", 0777) = 0 <0.000001>
1      0.000250 rt_sigaction(SIGINT, NULL, 0x7f, 8) = 0 <0.000001>
2      1.500000 mkdir("b", 0777) = 0 <0.000001>
1      0.000050 --- SIGCHLD {si_signo=SIGCHLD} ---
none of strace's
1      0.000100 mkdir("c",  <unfinished ...>
2      0.000100 mkdir("d", 0777) = 0 <0.000001>
1      0.000300 <... mkdir resumed>0777) = 0 <0.000400>
2      0.000001 mkdir("e", 0777) = 0 <0.000001>
)");
  ASSERT_TRUE(made.status.ok()) << made.status.message();
  EXPECT_THAT(made.operations, ElementsAre("mkdir /a", "mkdir /b", "mkdir /c",
                                           "mkdir /d", "mkdir /e"));
  std::vector<uint64_t> since;
  for (const uint64_t time : made.times) since.push_back(time - made.times[0]);
  EXPECT_THAT(since, ElementsAre(0, 1'500'250'000, 1'500'400'000, 1'500'500'000,
                                 1'500'801'000));
  EXPECT_EQ(made.counts.unread, 1u);
  EXPECT_THAT(made.counts.guessed.counts(),
              Contains(Key(HasSubstr("time of day"))));
}

TEST(StraceImportTest, TimesOfBothKindsAreThoseOfTheClock) {
  const Imported made = Strace(R"(
1 7.000001 (+     0.000000) mkdir("a", 0777) = 0 <0.000001>
1 9.000001 (+     2.000000) mkdir("b", 0777) = 0 <0.000001>
)");
  ASSERT_EQ(made.times.size(), 2u);
  EXPECT_EQ(made.times[1] - made.times[0], 2'000'000'000u);
  EXPECT_EQ(made.counts.unread, 0u);
}

// strace -ff: a file for each thread, without numbers in the lines.
TEST(StraceImportTest, FilesOfThreadsAreMerged) {
  const Imported made = ImportThreads(
      {{9,
        "1.000004 write(3</w/a>, \"child\", 5) = 5 <0.000001>\n"
        "1.000009 mkdir(\"e\", 0777) = 0 <0.000001>\n"
        "1.000010 +++ exited with 0 +++\n"},
       {7,
        "1.000001 openat(AT_FDCWD</w>, \"a\", O_WRONLY|O_CREAT|O_EXCL, 0666) "
        "= 3</w/a> <0.000001>\n"
        "1.000002 mkdir(\"d\", 0777) = 0 <0.000001>\n"
        "1.000003 clone(child_stack=NULL, flags=CLONE_CHILD_SETTID|SIGCHLD) "
        "= 9 <0.000001>\n"
        "1.000005 write(3</w/a>, \"parent\", 6) = 6 <0.000001>\n"
        "not a line\n"
        "1.000007 close(3</w/a>) = 0 <0.000001>\n"},
       {8, ""}});
  ASSERT_TRUE(made.status.ok()) << made.status.message();
  EXPECT_THAT(Main(made),
              ElementsAre("create /a", "mkdir /d", "write /a 0+5=5 'child'",
                          "write /a 5+6=6 'parent'", "mkdir /e", "release /a"));
  EXPECT_EQ(made.counts.unread, 1u);
}

// More threads at a time than there are descriptors for, with lines without a
// time, and one that is too long.
TEST(StraceImportTest, FilesOfManyThreadsAreMerged) {
  constexpr size_t kThreads = 600;
  constexpr size_t kRounds = 3;
  std::vector<std::pair<uint32_t, std::string>> texts(kThreads);
  std::vector<std::string> want;
  for (size_t round = 0; round < kRounds; ++round) {
    for (size_t i = 0; i < kThreads; ++i) {
      const std::string name =
          "d" + std::to_string(round) + "." + std::to_string(i);
      texts[i].first = static_cast<uint32_t>(1000 + i);
      texts[i].second += std::to_string(round + 1) + "." +
                         std::to_string(100'000 + i) + " mkdir(\"" + name +
                         "\", 0777) = 0 <0.000001>\nno line\n";
      want.push_back("mkdir /" + name);
    }
  }
  texts[0].second.insert(0, LineReader::kMostBytes + 1, 'x');
  texts[0].second.insert(LineReader::kMostBytes + 1, 1, '\n');
  rlimit before;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit few = before;
  few.rlim_cur = kThreads + 200;  // the texts are open
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  const Imported made = ImportThreads(texts);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_TRUE(made.status.ok()) << made.status.message();
  EXPECT_EQ(Main(made), want);
  EXPECT_EQ(made.counts.unread, kThreads * kRounds + 1);
}

TEST(StraceImportTest, FilesOfThreadsWithDifferencesCannotBeMerged) {
  const Imported made =
      ImportThreads({{7, "     0.000000 mkdir(\"d\", 0777) = 0 <0.000001>\n"},
                     {9, "     0.000004 mkdir(\"e\", 0777) = 0 <0.000001>\n"}});
  EXPECT_FALSE(made.status.ok());
  EXPECT_THAT(std::string(made.status.message()), HasSubstr("-ttt"));
}

TEST(StraceImportTest, ChildrenHaveTheDescriptorsAndFoldersOfTheirParents) {
  const Imported made = Strace(R"(
1 1.000001 openat(AT_FDCWD</w>, "a", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 3</w/a> <0.000001>
1 1.000002 mkdir("d", 0777) = 0 <0.000001>
1 1.000003 chdir("d") = 0 <0.000001>
1 1.000004 vfork( <unfinished ...>
2 1.000005 write(3</w/a>, "child", 5) = 5 <0.000001>
2 1.000006 execve("/bin/x", ["x"], 0x7f /* 3 vars */ <unfinished ...>
1 1.000007 <... vfork resumed>) = 2 <0.000003>
2 1.000008 <... execve resumed>) = 0 <0.000003>
1 1.000009 write(3</w/a>, "parent", 6) = 6 <0.000001>
2 1.000010 mkdir("e", 0777) = 0 <0.000001>
1 1.000011 close(3</w/a>) = 0 <0.000001>
2 1.000012 +++ exited with 0 +++
)");
  EXPECT_THAT(
      Main(made),
      ElementsAre("create /a", "mkdir /d", "write /a 0+5=5 'child'",
                  "write /a 5+6=6 'parent'", "mkdir /d/e", "release /a"));
}

TEST(StraceImportTest, WhatWasThereBeforeIsToldFirst) {
  const Imported made = Strace(R"(
1 1.000001 openat(AT_FDCWD</w>, "s/a", O_RDONLY) = 3</w/s/a> <0.000001>
1 1.000002 newfstatat(3</w/s/a>, "", {st_mode=S_IFREG|0640, st_size=6, ...}, AT_EMPTY_PATH) = 0 <0.000001>
1 1.000003 openat(AT_FDCWD</w>, "s/b", O_RDWR|O_CREAT, 0666) = 4</w/s/b> <0.000001>
1 1.000004 read(4</w/s/b>, "12345", 100) = 5 <0.000001>
1 1.000005 openat(AT_FDCWD</w>, "s/c", O_RDONLY) = -1 ENOENT (No such file) <0.000001>
)");
  EXPECT_THAT(
      made.operations,
      ElementsAre("lookup /s", "lookup /s/a", "open /s/a", "getattr /s/a",
                  "lookup /s/b", "open /s/b", "read /s/b 0+100=5 '12345'",
                  "lookup /s/c ! ENOENT", "flush /s/a", "release /s/a",
                  "flush /s/b", "release /s/b"));
}

TEST(StraceImportTest, NamesFollowRenamesAndLinks) {
  const Imported made = Strace(R"(
1 1.000001 mkdir("a", 0777) = 0 <0.000001>
1 1.000002 creat("a/f", 0644) = 3</w/a/f> <0.000001>
1 1.000003 rename("a", "b") = 0 <0.000001>
1 1.000004 write(3</w/b/f>, "1", 1) = 1 <0.000001>
1 1.000005 symlink("b", "l") = 0 <0.000001>
1 1.000006 link("l/f", "g") = 0 <0.000001>
1 1.000007 unlink("b/f") = 0 <0.000001>
1 1.000008 ftruncate(3</w/g>, 0) = 0 <0.000001>
1 1.000009 setxattr("g", "user.a", "v", 1, 0) = 0 <0.000001>
1 1.000010 rename("g", "/elsewhere") = 0 <0.000001>
)");
  EXPECT_THAT(
      Main(made),
      ElementsAre("mkdir /a", "create /a/f", "rename /a > /b",
                  "write /b/f 0+1=1 '1'", "symlink /l -> b", "link /b/f > /g",
                  "unlink /b/f", "setattr /g size 0",
                  "setxattr /g+1 @user.a 'v'", "unlink /g", "release /g"));
  EXPECT_THAT(made.counts.left_out.counts(),
              Contains(Key(HasSubstr("moved out"))));
}

TEST(StraceImportTest, ACopyNamesItsDestination) {
  const Imported made = Strace(R"(
1 1.000001 creat("a", 0644) = 3</w/a> <0.000001>
1 1.000002 creat("b", 0644) = 4</w/b> <0.000001>
1 1.000003 write(3</w/a>, "123456", 6) = 6 <0.000001>
1 1.000004 copy_file_range(3</w/a>, [1], 4</w/b>, NULL, 5, 0) = 5 <0.000001>
1 1.000005 rename("b", "c") = 0 <0.000001>
1 1.000006 copy_file_range(3</w/a>, [0], 4</w/c>, NULL, 2, 0) = 2 <0.000001>
)");
  EXPECT_THAT(
      Main(made),
      ElementsAre("create /a", "create /b", "write /a 0+6=6 '123456'",
                  "copy_file_range /a > /b 1+5", "rename /b > /c",
                  "copy_file_range /a > /c 0+2", "release /a", "release /c"));
}

TEST(StraceImportTest, WhatIsNotTakenIsCountedByName) {
  const Imported made = Strace(R"(
strace: Process 4 attached
1 1.000001 mkdir("a", 0777) = 0 <0.000001>
1 1.000002 splice(3, NULL, 4, NULL, 5, 0) = 5 <0.000001>
1 1.000003 mkdir("/outside", 0777) = 0 <0.000001>
1 1.000004 futex(0x1, FUTEX_WAKE, 1) = 0 <0.000001>
1 1.000005 mkdir("b"..., 0777) = 0 <0.000001>
1 1.000006 read(9, "x", 1) = 1 <0.000001>
mkdir("c", 0777) = 0
)");
  EXPECT_THAT(Main(made), ElementsAre("mkdir /a"));
  const auto& out = made.counts.left_out.counts();
  for (const char* key :
       {"splice", "outside", "strace: Process", "cut", "not told", "-ttt"}) {
    EXPECT_THAT(out, Contains(Key(HasSubstr(key)))) << key;
  }
  EXPECT_THAT(out, Not(Contains(Key("futex"))));
}

TEST(StraceImportTest, TheSameTextGivesTheSameBytes) {
  const char* const text = "1 1.5 mkdir(\"a\", 0777) = 0 <0.000001>\n";
  EXPECT_EQ(Strace(text).bytes, Strace(text).bytes);
}

TEST(StraceImportTest, DataLoss_ATextWithoutTimesIsRefused) {
  const Imported made = Strace("mkdir(\"a\", 0777) = 0\n");
  EXPECT_FALSE(made.status.ok());
  EXPECT_THAT(made.status.message(), HasSubstr("-ttt"));
}

TEST(StraceImportTest, Malicious_NamesThatLeadElsewhereStayBelow) {
  const Imported made = Strace(R"(
1 1.000001 mkdir("../../etc/x", 0777) = 0 <0.000001>
1 1.000002 mkdir("a/../../w/b", 0777) = 0 <0.000001>
1 1.000003 mkdir("c\0d", 0777) = 0 <0.000001>
1 1.000004 symlink("l", "l") = 0 <0.000001>
1 1.000005 mkdir("l/m", 0777) = 0 <0.000001>
1 1.000006 rename("b", "b/b/b") = 0 <0.000001>
1 1.000007 mkdir("b/c", 0777) = 0 <0.000001>
)");
  ASSERT_TRUE(made.status.ok());
  for (const std::string& line : made.operations) {
    EXPECT_THAT(line, Not(HasSubstr(".."))) << line;
    EXPECT_THAT(line, Not(HasSubstr("etc"))) << line;
  }
}

TEST(StraceImportTest, Malicious_DamagedTextEndsInOrder) {
  const std::string good =
      R"(1 1.000001 openat(AT_FDCWD</w>, "a", O_RDWR|O_CREAT, 0666) = 3</w/a> <0.000001>
1 1.000002 writev(3</w/a>, [{iov_base="he\33", iov_len=3}], 1) = 3 <0.000001>
1 1.000003 clone(child_stack=NULL, flags=CLONE_FILES|SIGCHLD <unfinished ...>
2 1.000004 rename("a", "b") = 0 <0.000001>
1 1.000005 <... clone resumed>) = 2 <0.000001>
1 1.000006 utimensat(AT_FDCWD</w>, "b", [{tv_sec=1, tv_nsec=2}, UTIME_OMIT], 0) = 0 <0.000001>
2 1.000007 +++ superseded by execve in pid 1 +++
1 1.000008 close_range(3</w/b>, 4294967295, 0) = 0 <0.000001>
1 1.000009 +++ exited with 0 +++
)";
  std::mt19937 random(7);
  for (int i = 0; i < 3000; ++i) {
    std::string bad = good;
    for (int k = random() % 6; k >= 0; --k) {
      const size_t at = random() % bad.size();
      switch (random() % 3) {
        case 0:
          bad[at] = static_cast<char>(random());
          break;
        case 1:
          bad.erase(at, random() % 9);
          break;
        default:
          bad.insert(at, bad.substr(random() % bad.size(), random() % 40));
      }
    }
    const Imported made = Strace(bad);
    for (const std::string& line : made.operations) {
      EXPECT_THAT(line, Not(HasSubstr("report: "))) << bad;
    }
  }
}

}  // namespace
}  // namespace tracefs::import
