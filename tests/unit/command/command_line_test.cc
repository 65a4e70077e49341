// Options as rows: what is read, refused and shown follows from them alone.
#include "tracefs/command/command_line.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "tracefs/command/help_page.h"
#include "tracefs/command/paged_output.h"

namespace tracefs {
namespace {

constexpr Choice<int> kColours[] = {{"always", 1}, {"never", 0}};

CommandOptions Rows() {
  return {
      {"format", "NAME", "how it is written", false, "text"},
      {.name = "follow,f", .help = "go on", .excludes = "wait limit"},
      {"limit", "N", "at most N"},
      {"size", "SIZE", "so large"},
      {"output", "FILE", "to where"},
      {.name = "color",
       .value = "WHEN",
       .help = "coloured or not",
       .words = WordsOf(kColours)},
      {.name = "log",
       .value = "WHERE",
       .help = "where to",
       .words = "journal, none",
       .open = true},
      {.name = "overlapping", .help = "what was running", .needs = "from to"},
      {"from", "TIME", "the first"},
      ToOption(),
      {"set", "NAME=VALUE", "a choice", true},
      {",o", "OPT", "a letter alone", true},
      WaitOption(),
      HelpOption(),
      VersionOption()};
}

Result<CommandLine> Parse(std::vector<const char*> words,
                          const CommandOptions& rows = Rows()) {
  words.insert(words.begin(), "command");
  return CommandLine::Parse(static_cast<int>(words.size()), words.data(), rows,
                            "trace", " (see command --help)");
}

std::string ErrorOf(std::vector<const char*> words) {
  const auto line = Parse(std::move(words));
  EXPECT_EQ(line.status().code(), StatusCode::kInvalid);
  return line.status().message();
}

HelpPage Page() {
  return {.command = "command",
          .begin = "Usage: command\n",
          .rows = Rows(),
          .common = "format help",
          .details = "\nFormats:\n  text\n",
          .details_of = "the formats",
          .examples = {"one", "two", "three", "four"},
          .end = "Exit status: 0.\n"};
}

TEST(HelpPageTest, HelpHasCommonRowsAndSaysWhereTheOthersAre) {
  const std::string text = HelpText(Page(), {.asked = true});
  EXPECT_EQ(text.find("--follow"), text.npos) << text;
  EXPECT_NE(text.find("--format"), text.npos) << text;
  EXPECT_EQ(text.find("Formats:"), text.npos) << text;
  EXPECT_NE(text.find("\nExamples:\n  one\n  two\n  three\n\n"), text.npos)
      << text;
  EXPECT_TRUE(text.ends_with("command --help=all has " +
                             std::to_string(Rows().size() - 2) +
                             " more options and the formats.\n"))
      << text;
}

TEST(HelpPageTest, HelpThatHasEveryRowSaysWhatElseThereIs) {
  HelpPage page = Page();
  page.rows = {HelpOption()};
  page.common = "help";
  const std::string text = HelpText(page, {.asked = true});
  EXPECT_TRUE(text.ends_with("command --help=all says the formats.\n")) << text;
}

TEST(HelpPageTest, HelpAllHasEveryRow) {
  const auto line = Parse({"--help=all"});
  ASSERT_TRUE(line.ok());
  const std::string text = HelpText(Page(), line->Help());
  for (const char* part : {"--follow", "--format", "\nFormats:\n", "\n  four\n",
                           "\nExit status: 0.\n"}) {
    EXPECT_NE(text.find(part), text.npos) << part << "\n" << text;
  }
  EXPECT_EQ(text.find("--help=all has"), text.npos);
}

TEST(HelpPageTest, HelpIsAllWhereNothingIsLeftOut) {
  HelpPage page = Page();
  page.common = {};
  page.details.clear();
  EXPECT_EQ(HelpText(page, {.asked = true}),
            HelpText(page, {.asked = true, .all = true}));
}

TEST(HelpPageTest, AWordAfterTheOptionsIsNoHelp) {
  const auto line = Parse({"--", "--help=all"});
  ASSERT_TRUE(line.ok());
  EXPECT_FALSE(line->Help());
  EXPECT_EQ(line->Texts("trace"), std::vector<std::string>{"--help=all"});
}

TEST(CommandLineTest, AnImpliedValueStandsWhereNoneFollowsAnEqualsSign) {
  const CommandOptions rows = {
      {.name = "keep", .value = "WHAT", .help = "kept", .implied = "usual"}};
  const auto alone = Parse({"--keep", "a.trace"}, rows);
  ASSERT_TRUE(alone.ok());
  EXPECT_EQ(alone->Text("keep"), "usual");
  EXPECT_EQ(alone->Texts("trace"), std::vector<std::string>{"a.trace"});
  const auto given = Parse({"--keep=all", "a.trace"}, rows);
  ASSERT_TRUE(given.ok());
  EXPECT_EQ(given->Text("keep"), "all");
  const auto none = Parse({"a.trace"}, rows);
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(none->Has("keep"));
  EXPECT_NE(OptionsText(rows).find("--keep [=WHAT]"), std::string::npos);
  EXPECT_NE(OptionsAsJson(rows).find("\"optional\":true"), std::string::npos);
}

TEST(CommandLineTest, WhatWasGivenIsThere) {
  const auto line = Parse({"a", "-f", "--set", "x=1", "--set=y=2", "-o", "u,v",
                           "--from", "-5s", "b"});
  ASSERT_TRUE(line.ok()) << line.status().message();
  EXPECT_TRUE(line->Has("follow"));
  EXPECT_EQ(line->Text("from"), "-5s");
  EXPECT_EQ(line->Texts("set"), (std::vector<std::string>{"x=1", "y=2"}));
  EXPECT_EQ(line->Texts("-o"), (std::vector<std::string>{"u,v"}));
  EXPECT_EQ(line->Texts("trace"), (std::vector<std::string>{"a", "b"}));
  EXPECT_FALSE(line->Has("limit"));
  EXPECT_EQ(line->Text("limit"), "");
}

TEST(CommandLineTest, AFallbackIsAValueThatWasNotGiven) {
  const auto line = Parse({});
  ASSERT_TRUE(line.ok());
  EXPECT_EQ(line->Text("format"), "text");
  EXPECT_FALSE(line->Has("format"));
  EXPECT_EQ(Parse({"--format", "csv"})->Text("format"), "csv");
}

TEST(CommandLineTest, ExcludedOptionsAreRefusedWhicheverComesFirst) {
  const std::string refused = "--follow and --limit exclude each other";
  EXPECT_EQ(ErrorOf({"--follow", "--limit", "3"}), refused);
  EXPECT_EQ(ErrorOf({"--limit", "3", "-f"}), refused);
  EXPECT_EQ(ErrorOf({"--wait", "-f"}),
            "--follow and --wait exclude each other");
  EXPECT_TRUE(Parse({"--wait", "--limit", "3"}).ok());
}

TEST(CommandLineTest, OneOfWhatAnOptionNeedsIsEnough) {
  EXPECT_EQ(ErrorOf({"--overlapping"}), "--overlapping needs --from or --to");
  // As of a variable of a script that was never set.
  EXPECT_EQ(ErrorOf({"--output", ""}), "--output: its FILE is empty");
  EXPECT_TRUE(Parse({"--overlapping", "--to", "1"}).ok());
  EXPECT_TRUE(Parse({"--overlapping", "--from", "1"}).ok());
}

TEST(CommandLineTest, HelpIsGivenWhateverElseIsWrong) {
  EXPECT_TRUE(Parse({"--follow", "--wait", "--help"}).ok());
  EXPECT_TRUE(Parse({"--overlapping", "--version"}).ok());
}

TEST(CommandLineTest, WrongNamesAndValuesAreToldWithTheNextStep) {
  EXPECT_NE(ErrorOf({"--formt", "x"}).find("did you mean '--format'"),
            std::string::npos)
      << ErrorOf({"--formt", "x"});
  EXPECT_NE(ErrorOf({"--fol"}).find("(see command --help)"), std::string::npos);
  EXPECT_NE(ErrorOf({"--from"}).find("--from"), std::string::npos);
  EXPECT_NE(ErrorOf({"--limit", "1", "--limit", "2"}).find("--limit"),
            std::string::npos);
}

TEST(CommandLineTest, AWordOfSeveralStandsForItsValue) {
  int colour = 7;
  Parse({})->Take("color", kColours, &colour);
  EXPECT_EQ(colour, 7);
  Parse({"--color", "never"})->Take("color", kColours, &colour);
  EXPECT_EQ(colour, 0);
  Parse({"--color=always"})->Take("color", kColours, &colour);
  EXPECT_EQ(colour, 1);
}

TEST(CommandLineTest, OtherWordsAreRefusedWithThoseThereAre) {
  EXPECT_EQ(ErrorOf({"--color", "nevr"}),
            "--color: there is no 'nevr'; there are always, never; did you "
            "mean 'never'?");
  EXPECT_EQ(ErrorOf({"--color", ""}).find("--color: there is no"), 0u);
  EXPECT_EQ(Parse({"--log", "journal:/run/x"})->Text("log"), "journal:/run/x");
}

TEST(CommandLineTest, NumbersAreTakenWithinTheirBounds) {
  uint32_t number = 5;
  EXPECT_TRUE(Parse({})->Take("limit", 1, 9, &number).ok());
  EXPECT_EQ(number, 5u);
  for (const char* const good : {"1", "9"}) {
    EXPECT_TRUE(Parse({"--limit", good})->Take("limit", 1, 9, &number).ok());
    EXPECT_EQ(std::to_string(number), good);
  }
  for (const char* const bad : {"0", "10", "x", "1K", "-1", ""}) {
    const Status status = Parse({"--limit", bad})->Take("limit", 1, 9, &number);
    EXPECT_EQ(status.message(),
              "--limit: '" + std::string(bad) + "' is no number from 1 to 9");
    EXPECT_EQ(number, 9u);
  }
}

TEST(CommandLineTest, SizesHaveUnits) {
  uint64_t size = 0;
  EXPECT_TRUE(
      Parse({"--size", "2K"})->TakeSize("size", 1, UINT64_MAX, &size).ok());
  EXPECT_EQ(size, 2048u);
  EXPECT_EQ(
      Parse({"--size", "2x"})->TakeSize("size", 1, UINT64_MAX, &size).message(),
      "--size: '2x' is no size from 1 on");
}

TEST(CommandLineTest, AllRowsAreNoneToLeaveOut) {
  std::optional<size_t> rows;
  EXPECT_TRUE(Parse({})->TakeRows("limit", &rows).ok());
  EXPECT_EQ(rows, std::nullopt);
  EXPECT_TRUE(Parse({"--limit", "3"})->TakeRows("limit", &rows).ok());
  EXPECT_EQ(rows, 3u);
  EXPECT_TRUE(Parse({"--limit", "all"})->TakeRows("limit", &rows).ok());
  EXPECT_EQ(rows, 0u);
  EXPECT_FALSE(Parse({"--limit", "0"})->TakeRows("limit", &rows).ok());
}

TEST(CommandLineTest, ProgramsAreGivenTheRowsAsJson) {
  EXPECT_EXIT(Parse({"--help=json"}), testing::ExitedWithCode(0), "");
}

TEST(CommandLineTest, HelpHasEachRow) {
  CommandOptions rows = Rows();
  AddPagerOptions(&rows);
  const OptionGroup more = {"More", {{"group", "NAME", "of a group"}}};
  const std::string help = OptionsText(rows, {more});
  EXPECT_EQ(help.rfind("Options:\n", 0), 0u);
  EXPECT_NE(help.find("\nMore:\n  --group NAME"), std::string::npos) << help;
  for (const CommandOption& row : rows) {
    const std::string name =
        row.long_name().empty() ? "-o OPT" : "--" + row.long_name();
    const size_t at = help.find(name);
    ASSERT_NE(at, std::string::npos) << name;
    const std::string line = help.substr(at, help.find('\n', at) - at);
    if (!row.value.empty()) {
      EXPECT_NE(line.find(row.value), std::string::npos) << line;
    }
    const std::string word = row.help.substr(0, row.help.find(' '));
    EXPECT_NE(help.find(word, at), std::string::npos) << name;
  }
}

TEST(CommandLineTest, RowsNameOptionsThatThereAre) {
  CommandOptions rows = Rows();
  AddPagerOptions(&rows);
  const auto line = Parse({"--pager", "less", "--no-pager"}, rows);
  EXPECT_EQ(line.status().message(),
            "--pager and --no-pager exclude each other");
}

}  // namespace
}  // namespace tracefs
