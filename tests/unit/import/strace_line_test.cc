// Lines of strace, taken apart.
#include "tracefs/import/strace_line.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>

namespace tracefs::import {
namespace {

using Kind = StraceLine::Kind;

TEST(StraceLineTest, ACallHasThreadTimeArgumentsResultAndDuration) {
  const auto line = ParseStraceLine(
      R"(17 1795393323.725856 openat(AT_FDCWD</w>, "a, b) = 3", )"
      R"(O_RDWR|O_CREAT, 0640) = 3</w/a, b) = 3> <0.000010>)");
  ASSERT_TRUE(line);
  EXPECT_EQ(line->kind, Kind::kCall);
  EXPECT_EQ(line->tid, 17u);
  EXPECT_TRUE(line->has_time);
  EXPECT_EQ(line->real_ns, 1795393323725856000u);
  EXPECT_EQ(line->name, "openat");
  StraceCall call;
  ASSERT_TRUE(ParseStraceCall(line->rest, &call));
  ASSERT_EQ(call.arguments.size(), 4u);
  EXPECT_EQ(DecodeFlags(call.at(2)), unsigned{O_RDWR | O_CREAT});
  EXPECT_EQ(DecodeNumber(call.at(3)), 0640);
  EXPECT_EQ(call.duration_ns, 10000u);
  std::string name;
  bool cut = false;
  ASSERT_TRUE(DecodeString(call.at(1), &name, &cut));
  EXPECT_EQ(name, "a, b) = 3");
  DescriptorArgument made;
  ASSERT_TRUE(DecodeDescriptor(call.result, &made));
  EXPECT_EQ(made.number, 3);
  EXPECT_EQ(made.path, "/w/a, b) = 3");
}

TEST(StraceLineTest, OtherLinesAreToldApart) {
  const auto kind = [](std::string_view text) {
    const auto line = ParseStraceLine(text);
    return line ? std::optional(line->kind) : std::nullopt;
  };
  EXPECT_EQ(kind("5 1.000001 +++ exited with 0 +++"), Kind::kExit);
  EXPECT_EQ(kind("5 1.000001 +++ killed by SIGKILL +++"), Kind::kExit);
  EXPECT_EQ(kind("5 1.000001 +++ superseded by execve in pid 4 +++"),
            Kind::kSuperseded);
  EXPECT_EQ(kind("5 1.000001 --- SIGCHLD {si_signo=SIGCHLD} ---"),
            Kind::kSignal);
  EXPECT_EQ(kind("5 1.000001 read(3</w/a>,  <unfinished ...>"),
            Kind::kUnfinished);
  EXPECT_EQ(kind("5 1.000001 <... read resumed>\"a\", 1) = 1 <0.000001>"),
            Kind::kResumed);
  EXPECT_EQ(kind("[pid   5] 1.000001 fork() = 6"), Kind::kCall);
  EXPECT_EQ(kind("1.000001 fork() = 6"), Kind::kCall);
  EXPECT_EQ(kind("strace: Process 12 attached"), std::nullopt);
  EXPECT_EQ(kind(""), std::nullopt);
  EXPECT_FALSE(ParseStraceLine("5 fork() = 6")->has_time);
}

TEST(StraceLineTest, FailuresHaveTheirError) {
  StraceCall call;
  ASSERT_TRUE(ParseStraceCall(
      "\"/x\", 0x7ff) = -1 ENOENT (No such file or directory) <0.000009>",
      &call));
  EXPECT_EQ(ErrnoOf(call.error), ENOENT);
  EXPECT_EQ(call.duration_ns, 9000u);
  EXPECT_EQ(ErrnoOf("ERESTARTSYS"), 0);
}

TEST(StraceLineTest, EscapesAreUndone) {
  std::string text;
  bool cut = false;
  ASSERT_TRUE(DecodeString(R"("a\n\"\\\0\1019\x41\377"...)", &text, &cut));
  EXPECT_EQ(text, std::string("a\n\"\\\0A9A\xff", 9));
  EXPECT_TRUE(cut);
  DescriptorArgument given;
  ASSERT_TRUE(DecodeDescriptor(R"(4</w/a\74b\76>(deleted))", &given));
  EXPECT_EQ(given.path, "/w/a<b>");
  EXPECT_TRUE(given.deleted);
  ASSERT_TRUE(DecodeDescriptor("AT_FDCWD</w>", &given));
  EXPECT_EQ(given.number, DescriptorArgument::kWorkingDirectory);
}

TEST(StraceLineTest, StructuresHaveMembers) {
  const std::string_view stat =
      "{st_mode=S_IFREG|0644, st_size=6, st_mtime=1 /* 2001-01-01T, */, ...}";
  EXPECT_EQ(DecodeFlags(Member(stat, "st_mode")), unsigned{S_IFREG | 0644});
  EXPECT_EQ(Member(stat, "st_size"), "6");
  EXPECT_EQ(Member(stat, "size"), "");
  EXPECT_EQ(Elements("[{iov_base=\"a]\", iov_len=2}, {iov_base=\"\"}]").size(),
            2u);
}

TEST(StraceLineTest, Malicious_CutLinesNeverReadPastTheirEnd) {
  const std::string whole =
      R"x(17 1.725856 utimensat(3<TCP:[1->2]>, "a\")", [{tv_sec=1 /* x */}, )x"
      R"x({a=[1, "\x4", 2]}], 0) = 3</w\7> (y) <0.000010>)x";
  for (size_t size = 0; size <= whole.size(); ++size) {
    // In memory of just that size, for sanitizers.
    const std::vector<char> bytes(whole.begin(),
                                  whole.begin() + static_cast<long>(size));
    const auto line = ParseStraceLine({bytes.data(), bytes.size()});
    if (!line) continue;
    StraceCall call;
    (void)ParseStraceCall(line->rest, &call);
    ParseStraceArguments(line->rest, &call);
    for (const std::string_view argument : call.arguments) {
      std::string text;
      bool cut = false;
      DescriptorArgument given;
      (void)DecodeString(argument, &text, &cut);
      (void)DecodeDescriptor(argument, &given);
      (void)Member(argument, "tv_sec");
      (void)Elements(argument);
      (void)DecodeFlags(argument);
    }
  }
}

}  // namespace
}  // namespace tracefs::import
