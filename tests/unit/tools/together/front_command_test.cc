#include "tracefs/tools/together/front_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tracefs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

PathKind Look(const std::string& path) {
  if (path == "a.trace" || path == "run") return PathKind::kFile;
  if (path == "/mnt" || path == "parts") return PathKind::kFolder;
  return PathKind::kMissing;
}

std::vector<std::string> Words(std::vector<std::string> given) {
  const Result<FrontAnswer> answer = AnswerOfFront(given, &Look);
  EXPECT_TRUE(answer.ok()) << answer.status().message();
  return answer.ok() ? answer->words : std::vector<std::string>{};
}

std::string Refusal(std::vector<std::string> given) {
  const Result<FrontAnswer> answer = AnswerOfFront(given, &Look);
  EXPECT_EQ(answer.status().code(), StatusCode::kInvalid);
  return answer.ok() ? "" : answer.status().message();
}

TEST(FrontCommandTest, ACommandGetsAllItsWordsAsTheyAre) {
  EXPECT_THAT(
      Words({"dump", "--by", "op", "a.trace", "help", "top"}),
      ElementsAre("tracefs-dump", "--by", "op", "a.trace", "help", "top"));
  EXPECT_THAT(Words({"run", "-o", "x", "--", "dump", "-h"}),
              ElementsAre("tracefs-run", "-o", "x", "--", "dump", "-h"));
  EXPECT_THAT(Words({"verify"}), ElementsAre("tracefs-verify"));
}

TEST(FrontCommandTest, ATraceIsSummedUp) {
  EXPECT_THAT(Words({"a.trace"}),
              ElementsAre("tracefs-report", "summary", "a.trace"));
  EXPECT_THAT(Words({"parts", "--key", "k", "a.trace"}),
              ElementsAre("tracefs-report", "summary", "parts", "--key", "k",
                          "a.trace"));
}

TEST(FrontCommandTest, ACommandGoesBeforeAFileOfItsName) {
  EXPECT_THAT(Words({"run"}), ElementsAre("tracefs-run"));
}

TEST(FrontCommandTest, TopOfAMountIsLiveAndOfATraceBrowses) {
  EXPECT_THAT(Words({"top", "/mnt", "--batch"}),
              ElementsAre("tracefs-ctl", "/mnt", "top", "--batch"));
  EXPECT_THAT(Words({"top", "--batch", "/mnt"}),
              ElementsAre("tracefs-ctl", "/mnt", "top", "--batch"));
  EXPECT_THAT(Words({"top", "a.trace"}),
              ElementsAre("tracefs-dump", "--browse", "a.trace"));
  EXPECT_THAT(Words({"top"}), ElementsAre("tracefs-ctl", "top"));
  // The value of an option is neither.
  EXPECT_THAT(Words({"top", "--interval", "1s", "/mnt"}),
              ElementsAre("tracefs-ctl", "/mnt", "top", "--interval", "1s"));
  EXPECT_THAT(
      Words({"top", "--view", "files", "a.trace"}),
      ElementsAre("tracefs-dump", "--browse", "--view", "files", "a.trace"));
  EXPECT_THAT(Words({"top", "/gone", "-n", "1"}),
              ElementsAre("tracefs-ctl", "/gone", "top", "-n", "1"));
}

TEST(FrontCommandTest, HelpIsOfCommandsAndOfManualPages) {
  EXPECT_THAT(Words({"help", "dump"}), ElementsAre("tracefs-dump", "--help"));
  EXPECT_THAT(Words({"help", "top"}), ElementsAre("tracefs-ctl", "--help"));
  EXPECT_THAT(Words({"help", "filters"}),
              ElementsAre("man", "7", "tracefs-filter"));
  for (const auto& words : std::vector<std::vector<std::string>>{
           {}, {"help"}, {"--help"}, {"-h"}}) {
    const Result<FrontAnswer> answer = AnswerOfFront(words, &Look);
    ASSERT_TRUE(answer.ok());
    EXPECT_EQ(answer->text, FrontHelp());
  }
}

TEST(FrontCommandTest, HelpFitsAScreen) {
  const std::string help = FrontHelp();
  size_t lines = 0;
  for (size_t at = 0; at < help.size(); ++lines) {
    const size_t end = help.find('\n', at);
    ASSERT_NE(end, help.npos);
    size_t columns = 0;
    for (char c : help.substr(at, end - at)) columns += (c & 0xc0) != 0x80;
    EXPECT_LE(columns, 80u) << help.substr(at, end - at);
    at = end + 1;
  }
  EXPECT_LE(lines, 24u);
}

TEST(FrontCommandTest, WhatIsNeitherIsRefusedWithTheNearestWord) {
  EXPECT_THAT(Refusal({"dmup"}), HasSubstr("did you mean 'dump'?"));
  EXPECT_THAT(Refusal({"gone.trace"}),
              HasSubstr("there is no such command or trace"));
  EXPECT_THAT(Refusal({"--frobnicate"}), HasSubstr("tracefs help"));
  EXPECT_THAT(Refusal({"help", "filtres"}),
              HasSubstr("did you mean 'filters'?"));
}

}  // namespace
}  // namespace tracefs
