// The command line of tracefs-ctl: what is asked for, and what is refused.
#include "tracefs/tools/ctl/options.h"

#include <gtest/gtest.h>

#include <vector>

namespace tracefs {
namespace {

Result<CtlOptions> Parse(std::vector<const char*> words) {
  words.insert(words.begin(), "tracefs-ctl");
  return ParseCtlOptions(static_cast<int>(words.size()), words.data());
}

std::string ErrorOf(std::vector<const char*> words) {
  const auto options = Parse(std::move(words));
  EXPECT_EQ(options.status().code(), StatusCode::kInvalid);
  return options.status().message();
}

TEST(CtlOptionsTest, EveryCommandIsKnownWithItsArguments) {
  const struct {
    std::vector<const char*> words;
    CtlCommand command;
  } cases[] = {
      {{"/m", "list"}, CtlCommand::kList},
      {{"/m", "explain", "--format", "json"}, CtlCommand::kExplain},
      {{"/m", "stats"}, CtlCommand::kStats},
      {{"/m", "flush", "--timeout", "3"}, CtlCommand::kFlush},
      {{"/m", "add", "f.conf"}, CtlCommand::kAdd},
      {{"/m", "remove", "3"}, CtlCommand::kRemove},
      {{"/m", "stop", "3"}, CtlCommand::kStop},
      {{"/m", "start", "3"}, CtlCommand::kStart},
      {{"/m", "set-filter", "3", "op = read"}, CtlCommand::kSetFilter},
      {{"/m", "tail"}, CtlCommand::kTail},
      {{"/m", "tail", "op", "=", "read"}, CtlCommand::kTail},
      {{"/m", "top", "--sort", "bytes"}, CtlCommand::kTop},
  };
  for (const auto& c : cases) {
    const auto options = Parse(c.words);
    ASSERT_TRUE(options.ok()) << options.status().message();
    EXPECT_EQ(options->command, c.command);
    EXPECT_EQ(options->mount, "/m");
    // Each is in the help.
    EXPECT_NE(CtlHelp().begin.find(std::string("\n  ") + c.words[1] + ' '),
              std::string::npos);
  }
}

TEST(CtlOptionsTest, ArgumentsAreTaken) {
  const auto filter =
      Parse({"/m", "set-filter", "7", "op = read", "AND", "cuid = 0"});
  ASSERT_TRUE(filter.ok());
  EXPECT_EQ(filter->tracer, "7");
  EXPECT_EQ(filter->filter, "op = read AND cuid = 0");
  const auto top = Parse({"/m", "top", "--interval", "500ms", "--rounds", "2",
                          "--sort", "errors", "--timeout", "5", "op = read"});
  ASSERT_TRUE(top.ok());
  EXPECT_EQ(top->interval.count(), 500);
  EXPECT_EQ(top->rounds, 2u);
  EXPECT_EQ(top->sort, screen::Column::kErrors);
  EXPECT_EQ(top->patience.count(), 5);
  EXPECT_EQ(top->filter, "op = read");
  const auto tail = Parse({"/m", "tail", "--format", "text", "--utc"});
  ASSERT_TRUE(tail.ok());
  EXPECT_EQ(tail->time, TimeStyle::kUtc);
  EXPECT_EQ(Parse({"/m", "add", "a.conf"})->file, "a.conf");
}

TEST(CtlOptionsTest, HelpAndVersionNeedNothingElse) {
  EXPECT_TRUE(Parse({"--help"})->help);
  EXPECT_TRUE(Parse({"--version"})->version);
}

TEST(CtlOptionsTest, Malicious_WrongUsageIsExplained) {
  EXPECT_NE(ErrorOf({}).find("a mount and a command"), std::string::npos);
  EXPECT_NE(ErrorOf({"/m"}).find("a mount and a command"), std::string::npos);
  EXPECT_NE(ErrorOf({"/m", "lst"}).find("did you mean 'list'"),
            std::string::npos);
  // To be pasted.
  EXPECT_NE(ErrorOf({"list", "/a b"}).find(": tracefs-ctl '/a b' list"),
            std::string::npos);
  EXPECT_EQ(ErrorOf({"/m", "list", "x"}), "usage: tracefs-ctl MNT list");
  EXPECT_EQ(ErrorOf({"/m", "add"}), "usage: tracefs-ctl MNT add FILE");
  EXPECT_EQ(ErrorOf({"/m", "add", "a", "b"}),
            "usage: tracefs-ctl MNT add FILE");
  EXPECT_EQ(ErrorOf({"/m", "remove"}), "usage: tracefs-ctl MNT remove TRACER");
  EXPECT_EQ(ErrorOf({"/m", "set-filter", "1"}),
            "usage: tracefs-ctl MNT set-filter TRACER EXPR");
  EXPECT_NE(ErrorOf({"/m", "stop", "1x"}).find("'1x' is no number"),
            std::string::npos);
  EXPECT_EQ(Parse({"/m", "stop", "one"})->tracer, "one");
  EXPECT_NE(ErrorOf({"/m", "stop", "4294967296"}).find("is no number"),
            std::string::npos);
}

TEST(CtlOptionsTest, OptionsThatWouldBeIgnoredAreRefused) {
  EXPECT_NE(ErrorOf({"/m", "flush", "--format", "json"})
                .find("does not go with flush"),
            std::string::npos);
  EXPECT_NE(ErrorOf({"/m", "list", "--sort", "time"})
                .find("--sort does not go with list"),
            std::string::npos);
  EXPECT_NE(ErrorOf({"/m", "stats", "--rounds", "1"}).find("does not go"),
            std::string::npos);
  EXPECT_NE(ErrorOf({"/m", "list", "--format", "jsonl"}).find("there are text"),
            std::string::npos);
  EXPECT_NE(ErrorOf({"/m", "tail", "--format", "jsonl", "--utc"}).find("text"),
            std::string::npos);
  EXPECT_NE(ErrorOf({"/m", "tail", "--time-format", "noon"}).find("epoch"),
            std::string::npos);
}

TEST(CtlOptionsTest, ValuesOutOfRangeAreRefused) {
  EXPECT_NE(ErrorOf({"/m", "tail", "--format", "xls"}).find("there are text"),
            std::string::npos);
  EXPECT_NE(ErrorOf({"/m", "top", "--sort", "tim"}).find("mean 'time'"),
            std::string::npos);
  EXPECT_NE(ErrorOf({"/m", "top", "--interval", "1ms"}).find("--interval"),
            std::string::npos);
  EXPECT_NE(ErrorOf({"/m", "top", "--interval", "fast"}).find("--interval"),
            std::string::npos);
  EXPECT_NE(ErrorOf({"/m", "top", "--rounds", "0"}).find("--rounds"),
            std::string::npos);
  EXPECT_NE(ErrorOf({"/m", "list", "--timeout", "0"}).find("--timeout"),
            std::string::npos);
  EXPECT_NE(ErrorOf({"/m", "list", "--verbose"}).find("see tracefs-ctl"),
            std::string::npos);
}

}  // namespace
}  // namespace tracefs
