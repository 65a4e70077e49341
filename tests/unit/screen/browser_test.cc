// The browser and its pictures: what keys and clicks do, that pictures fit, and
// that nothing which names hold gets to the terminal.
#include "tracefs/screen/browser.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "filters/input/filter.h"
#include "filters/input/name_service.h"
#include "filters/input/name_table.h"
#include "tracefs/screen/picture.h"
#include "tracefs/screen/plain_report.h"
#include "tracefs/text/cell_width.h"

namespace tracefs::screen {
namespace {

// Counts that a test has made up.
class FakeFeed final : public Feed {
 public:
  struct One {
    Op op;
    std::string path;
    uint32_t pid = 1;
    uint64_t count = 1;
    uint64_t ns = 1000;
    std::string comm = "p";
  };
  std::vector<One> next;
  std::vector<Notice> notices;
  std::vector<std::string> lines;
  std::string followed;

  void AddDescriptors(std::vector<pollfd>*) const override {}
  Result<bool> Take(Activity* activity) override {
    if (next.empty()) return false;
    for (const One& one : next) {
      ActivityKey key;
      key.op = one.op;
      key.path = one.path;
      key.pid = one.pid;
      key.comm = one.comm;
      ActivityCounts& counts = activity->At(key);
      tally::TimedSums sums;
      sums.count = sums.timed = one.count;
      sums.time_ns = sums.max_ns = one.ns;
      counts.TimedSums::Add(sums);
      counts.durations.Add(300, one.count);
    }
    next.clear();
    activity->EndInterval(0, 1'000'000'000);
    return true;
  }
  bool ended() const override { return false; }
  std::vector<Notice> Notices() override { return notices; }
  std::vector<std::string> About() override { return {"tracer 1"}; }
  Status Follow(const std::string& filter) override {
    followed = filter;
    return Status::Ok();
  }
  void StopFollowing() override { followed = "(stopped)"; }
  Status TakeLines(std::vector<std::string>* out) override {
    out->insert(out->end(), lines.begin(), lines.end());
    lines.clear();
    return Status::Ok();
  }
};

class BrowserTest : public ::testing::Test {
 protected:
  static Browser::Options OfData() {
    Browser::Options options;
    options.title = "/data";
    options.sources = {"/data"};
    return options;
  }
  BrowserTest() : browser_(OfData(), feed_) {}

  void Happens(std::vector<FakeFeed::One> what) {
    feed_.next = std::move(what);
    ASSERT_TRUE(browser_.Take().ok());
    See();
  }
  std::string See(size_t width = 100, size_t height = 30) {
    Picture picture = Draw(browser_, width, height, {});
    std::string text;
    for (const Line& line : picture.lines) text += line.Plain() + '\n';
    hits_ = picture.hits;
    browser_.Drawn(std::move(picture.hits), picture.rows, picture.page_lines);
    return text;
  }
  Wish Press(std::string_view bytes) {
    KeyDecoder decoder;
    std::vector<Key> keys = decoder.Take(bytes);
    for (Key& key : decoder.Pause()) keys.push_back(key);
    Wish wish = Wish::kNothing;
    for (const Key& key : keys) {
      wish = browser_.Obey(key);
      if (wish == Wish::kFollow) {
        EXPECT_TRUE(browser_.Follow().ok());
      }
      if (wish == Wish::kStopFollowing) feed_.StopFollowing();
    }
    See(width_, height_);
    return wish;
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const Row& row : browser_.sheet().rows) names.push_back(row.name);
    return names;
  }
  static constexpr char kEnter[] = "\r";
  static constexpr char kEscape[] = "\x1b";
  static constexpr char kDown[] = "\x1b[B";

  FakeFeed feed_;
  Browser browser_;
  // Of the screen while keys are pressed.
  size_t width_ = 100;
  size_t height_ = 30;
  std::vector<Hit> hits_;
};

using NameList = std::vector<std::string>;

TEST_F(BrowserTest, ASmallScreenLeavesOutWholeWords) {
  Happens({{Op::read_, "/a", 7, 5}});
  Press("p");
  const std::string wide = See(120, 12);
  EXPECT_NE(wide.find(", by count, paused\n"), std::string::npos) << wide;
  for (size_t width = 24; width < 120; ++width) {
    const std::string text = See(width, 12);
    const std::string title = text.substr(0, text.find('\n'));
    // That it stands still is never cut away where the numbers have room.
    if (width >= 64) {
      EXPECT_TRUE(title.ends_with(", paused")) << title;
    }
  }
}

TEST_F(BrowserTest, HelpNamesTheViewsThatThereAre) {
  Happens({{Op::read_, "/a", 7, 5}});
  Press("?");
  const std::string text = See(100, 200);
  EXPECT_NE(text.find("1 .. 7, Tab"), std::string::npos) << text;
  EXPECT_EQ(text.find("8 mounts"), std::string::npos) << text;
  Browser::Options two = OfData();
  two.sources.push_back("/more");
  Browser browser(two, feed_);
  Key key;
  key.text = "?";
  EXPECT_EQ(browser.Obey(key), Wish::kNothing);
  std::string all;
  for (const Line& line : Draw(browser, 100, 200, {}).lines) {
    all += line.Plain() + "\n";
  }
  EXPECT_NE(all.find("1 .. 8, Tab"), std::string::npos) << all;
  EXPECT_NE(all.find("8 mounts"), std::string::npos) << all;
}

TEST_F(BrowserTest, HelpIsWrappedAndScrolledToItsEndOnly) {
  Happens({{Op::read_, "/a", 7, 5}});
  height_ = 12;
  Press("?");
  const auto lines_of = [](const std::string& text) {
    return static_cast<size_t>(std::ranges::count(text, '\n'));
  };
  for (const size_t width : {size_t{50}, size_t{100}}) {
    width_ = width;
    std::string text = See(width, 12);
    EXPECT_NE(text.find("(more below)"), std::string::npos) << text;
    std::string all = text;
    for (int i = 0; i < 300; ++i) {
      Press(kDown);
      text = See(width, 12);
      all += text;
      ASSERT_EQ(lines_of(text), 12u);
    }
    EXPECT_EQ(text.find("(more below)"), std::string::npos) << text;
    EXPECT_NE(text.find("set-filter."), std::string::npos) << text;
    // Nothing is cut: the words at the ends of lines are there.
    for (const char* word : {"home, end", "as you type", "opened; wheel"}) {
      EXPECT_NE(all.find(word), std::string::npos) << word;
    }
    // One step up shows another line at once.
    Press("\x1b[A");
    EXPECT_NE(See(width, 12), text);
    Press("?");
    Press("?");
  }
}

TEST_F(BrowserTest, OpensFromOperationToProcessToFileToItsOperations) {
  Happens({{Op::read_, "/a", 7, 5},
           {Op::read_, "/b", 8, 3},
           {Op::write_, "/a", 7, 4}});
  Press("1");
  EXPECT_EQ(Names(), (NameList{"read", "write"}));
  Press(kEnter);
  EXPECT_EQ(browser_.view().name, "processes");
  EXPECT_EQ(Names(), (NameList{"p[7]", "p[8]"}));
  Press(kEnter);
  EXPECT_EQ(browser_.view().name, "files");
  EXPECT_EQ(Names(), NameList{"/a"});
  EXPECT_EQ(browser_.sheet().total.count, 5u);
  Press(kEnter);
  EXPECT_EQ(browser_.page(), Page::kOperations);
  EXPECT_EQ(feed_.followed, "op = read AND cpid = 7 AND path = \"/a\"");
  feed_.lines = {"one", "two"};
  ASSERT_TRUE(browser_.Take().ok());
  EXPECT_NE(See().find("two"), std::string::npos);
  Press(kEscape);
  EXPECT_EQ(feed_.followed, "(stopped)");
  EXPECT_EQ(browser_.drill().FilterText(), "op = read AND cpid = 7");
  Press(kEscape);
  EXPECT_EQ(browser_.view().name, "processes");
  Press(kEscape);
  EXPECT_EQ(browser_.view().name, "operations");
  EXPECT_EQ(browser_.drill().FilterText(), "");
}

TEST_F(BrowserTest, TheVisibleFilterIsOneThatTheLanguageTakes) {
  Happens({{Op::readdir_, "/a \"\x1b[31m*", 7, 5}});
  for (const char* keys : {"1\r", "2\r", "3\r", "4\r", "4T\r", "7\r"}) {
    while (!browser_.drill().terms.empty()) Press(kEscape);
    Press(keys);
    const std::string filter = browser_.drill().FilterText();
    ASSERT_FALSE(filter.empty()) << keys;
    NameTable names;
    const Result<Filter> compiled =
        Filter::Compile(filter, {.file = "filter"}, SystemNameService(), names);
    EXPECT_TRUE(compiled.ok()) << compiled.status().message();
  }
}

TEST_F(BrowserTest, TheSelectedRowStaysSelectedWhereverItGoes) {
  Happens({{Op::read_, "/a", 1, 5}, {Op::read_, "/b", 1, 3}});
  Press("3");
  Press(kDown);
  Press(kDown);
  EXPECT_EQ(browser_.sheet().rows[browser_.selected()].name, "/b");
  Happens({{Op::read_, "/a", 1, 1},
           {Op::read_, "/b", 1, 9},
           {Op::read_, "/c", 1, 20}});
  EXPECT_EQ(browser_.sheet().rows[browser_.selected()].name, "/b");
  EXPECT_EQ(browser_.selected(), 1u);
}

TEST_F(BrowserTest, FindsWhileItIsTyped) {
  Happens({{Op::read_, "/src/main.cc"}, {Op::read_, "/src/quit.h"}});
  Press("3");
  Press("/");
  Press("q");  // not the end: it is typed
  EXPECT_EQ(Names(), NameList{"/src/quit.h"});
  EXPECT_NE(See().find("find: q_"), std::string::npos);
  Press("\x7f");
  EXPECT_EQ(Names().size(), 2u);
  Press("main");
  Press(kEnter);
  EXPECT_EQ(Names(), NameList{"/src/main.cc"});
  EXPECT_EQ(Press("q"), Wish::kQuit);
  Press(kEscape);
  EXPECT_EQ(Names().size(), 2u);
}

TEST_F(BrowserTest, WhatIsShownStaysWhilePaused) {
  Happens({{Op::read_, "/a", 1, 5}});
  Press("p");
  Happens({{Op::read_, "/b", 1, 5}});
  Press("3");
  EXPECT_EQ(Names(), NameList{"/a"});
  EXPECT_NE(See().find(", paused"), std::string::npos);
  Press("p");
  ASSERT_TRUE(browser_.Take().ok());
  EXPECT_EQ(Names(), NameList{"/b"});
  Press("a");
  EXPECT_EQ(Names(), (NameList{"/a", "/b"}));
}

TEST_F(BrowserTest, ClicksDoWhatKeysDo) {
  Happens({{Op::read_, "/a", 1, 5}, {Op::read_, "/b", 1, 3, 90000}});
  Press("3");
  const auto click = [&](Hit::Kind kind, size_t number) {
    for (const Hit& hit : std::vector<Hit>(hits_)) {
      if (hit.kind != kind || hit.number != number) continue;
      return Press("\x1b[<0;" + std::to_string(hit.from + 1) + ";" +
                   std::to_string(hit.line + 1) + "M");
    }
    ADD_FAILURE() << number;
    return Wish::kNothing;
  };
  click(Hit::Kind::kColumn, static_cast<size_t>(Column::kTime));
  EXPECT_EQ(Names(), (NameList{"/b", "/a"}));
  click(Hit::Kind::kColumn, static_cast<size_t>(Column::kTime));
  EXPECT_EQ(Names(), (NameList{"/a", "/b"}));
  click(Hit::Kind::kRow, 1);
  EXPECT_EQ(browser_.selected(), 1u);
  EXPECT_EQ(click(Hit::Kind::kRow, 1), Wish::kFollow);
  Press(kEscape);
  click(Hit::Kind::kView, 0);
  EXPECT_EQ(browser_.view().name, "operations");
}

TEST_F(BrowserTest, EveryPictureFitsAndAnyKeyMayComeAnyTime) {
  std::vector<FakeFeed::One> many;
  for (uint32_t i = 0; i < 300; ++i) {
    many.push_back(
        {static_cast<Op>(i % 30),
         "/a/rather/long/path/\xe4\xb8\xad\xe6\x96\x87/" + std::to_string(i),
         i % 40, i, i * 1000, "\xe4\xb8\xad"});
  }
  feed_.notices = {{Notice::Level::kBad, std::string(500, 'x')}};
  Happens(many);
  uint32_t random = 1;
  static constexpr std::string_view kKeys[] = {"1",
                                               "2",
                                               "3",
                                               "4",
                                               "5",
                                               "6",
                                               "7",
                                               "8",
                                               "T",
                                               "H",
                                               "s",
                                               "l",
                                               "?",
                                               "o",
                                               "\r",
                                               "\x1b",
                                               kDown,
                                               "\x1b[6~",
                                               "a",
                                               "<",
                                               ">",
                                               "I",
                                               "\t",
                                               "\x1b[Z",
                                               "/",
                                               "x",
                                               "\x7f",
                                               "*",
                                               "-",
                                               "+",
                                               "r",
                                               "p",
                                               "w",
                                               "\x1b[5~",
                                               "\x1b[<0;5;9M",
                                               "\x1b[<65;1;1M"};
  for (int i = 0; i < 1500; ++i) {
    random = random * 1664525 + 1013904223;
    Press(kKeys[(random >> 16) % std::size(kKeys)]);
    if (i % 50 == 0) Happens(many);
    for (const size_t width : {1u, 20u, 50u, 80u, 300u}) {
      const size_t height = width == 50   ? 12
                            : width == 80 ? 24
                            : width == 20 ? 3
                            : width == 1  ? 1
                                          : 80;
      const Picture picture = Draw(browser_, width, height, {});
      ASSERT_EQ(picture.lines.size(), height);
      for (const Line& line : picture.lines) {
        ASSERT_LE(line.width(), width);
        ASSERT_LE(WidthOf(line.Plain()), width);
      }
      for (const Hit& hit : picture.hits) ASSERT_LT(hit.line, height);
    }
  }
}

TEST_F(BrowserTest, Malicious_NamesCannotDriveTheTerminal) {
  // A blank would let it look like two fields.
  Happens({{Op::open_, "/a uid=0"}});
  Press("3");
  EXPECT_NE(See().find("\"/a uid=0\""), std::string::npos);
  const std::string evil =
      "/\x1b[2Jevil\n\r\t\xff\xe2\x80\xae"
      "bidi\xc2\x9b"
      "31m\x7f";
  Happens({{Op::open_, evil, 1, 1, 1, "\x1b]0;x\x07"}});
  for (const bool utf8 : {true, false}) {
    for (const char* keys : {"1", "2", "3", "4", "T", "7", "H", "s", "3\r"}) {
      Press(keys);
      const Picture picture =
          Draw(browser_, 200, 40, {.colour = false, .utf8 = utf8});
      for (const Line& line : picture.lines) {
        const std::string text = line.Plain();
        EXPECT_EQ(text.find("\xe2\x80\xae"), std::string::npos) << text;
        EXPECT_EQ(text.find("\xc2\x9b"), std::string::npos) << text;
        for (const char c : text) {
          ASSERT_TRUE(c < 0 ? utf8 : c >= ' ' && c != 0x7f) << text;
        }
      }
    }
  }
  for (const std::string& line : Report(browser_, nullptr, 200, 50, {})) {
    for (const char c : line) ASSERT_TRUE(c < 0 || (c >= ' ' && c != 0x7f));
  }
}

TEST_F(BrowserTest, Malicious_CutNamesStayInTheirQuotes) {
  const std::string word = SafeWord("/a \"b\" \\ uid=0 pid=1 end", true);
  for (size_t width = 0; width <= WidthOf(word); ++width) {
    const std::string cut = CutWord(word, width);
    EXPECT_LE(WidthOf(cut), width);
    if (cut.find_first_not_of('.') == std::string::npos) continue;
    size_t quotes = 0;
    for (size_t i = 0; i < cut.size(); ++i) {
      if (cut[i] == '\\') {
        ++i;
      } else if (cut[i] == '"') {
        ++quotes;
      }
    }
    EXPECT_EQ(quotes, 2u) << cut;
    EXPECT_EQ(cut.front(), '"');
    EXPECT_EQ(cut.back(), '"');
  }
}

TEST_F(BrowserTest, Malicious_SavedRowsAreNoFormulas) {
  Happens({{Op::open_, "=cmd|' /C calc'!A0"}, {Op::open_, "/a\"b,c"}});
  Press("3");
  const std::string csv = browser_.Csv();
  EXPECT_NE(csv.find("\n\\x3dcmd|"), std::string::npos) << csv;
  EXPECT_NE(csv.find("\"/a\"\"b,c\",1,"), std::string::npos) << csv;
}

TEST_F(BrowserTest, ColoursAreOnlyUsedWhereTheyAreWanted) {
  Happens({{Op::read_, "/a"}});
  bool coloured = false;
  for (const Line& line : Draw(browser_, 100, 30, {}).lines) {
    coloured |= line.Drawn(true).find("\x1b[30;") != std::string::npos;
    EXPECT_EQ(line.Drawn(false).find("\x1b[3"), std::string::npos);
  }
  EXPECT_TRUE(coloured);
}

TEST(ScreenTextTest, Malicious_WhatWasNotEscapedIsNotObeyed) {
  EXPECT_EQ(ForTerminal("a\x1b[2J\nb", true), "a\\x1b[2J\\nb");
  EXPECT_EQ(ForTerminal("\u202e", true), "\\xe2\\x80\\xae");
  // What is escaped stays as it is.
  const std::string escaped = SafeText("a\\\x1b\xffä", true);
  EXPECT_EQ(ForTerminal(escaped, true), escaped);
}

}  // namespace
}  // namespace tracefs::screen
