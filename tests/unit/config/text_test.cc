// What config and filter share in tracefs/base: cursor, spelling, units.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>

#include "tracefs/base/spelling.h"
#include "tracefs/base/text_cursor.h"
#include "tracefs/base/units.h"

namespace tracefs {
namespace {

TEST(TextCursorTest, CountsLinesAndBytes) {
  TextCursor in("ab\n\tc", "f", {5, 10});
  in.Advance(2);
  EXPECT_EQ(in.position(), (SourcePosition{5, 12}));
  in.Advance(2);
  EXPECT_EQ(in.position(), (SourcePosition{6, 2}));
  EXPECT_EQ(in.Peek(), 'c');
  EXPECT_EQ(in.Peek(7), '\0');
  in.Advance(100);
  EXPECT_TRUE(in.AtEnd());
  EXPECT_EQ(in.ErrorHere("x").message(), "f:6:3: x");
}

TEST(TextCursorTest, SkipsCommentsToTheEndOfTheirLine) {
  TextCursor in(" # a { \" \n\t#\nx", "f");
  in.SkipSpace();
  EXPECT_EQ(in.Rest(), "x");
  EXPECT_EQ(in.position(), (SourcePosition{3, 1}));
  TextCursor open("# no line end", "f");
  open.SkipSpace();
  EXPECT_TRUE(open.AtEnd());
}

TEST(TextCursorTest, ReadsStringsWithEscapes) {
  TextCursor in(R"("a\"b\\c\n\t\x41" rest)", "f");
  const auto text = in.TakeString(100);
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_EQ(*text, "a\"b\\c\n\tA");
  EXPECT_EQ(in.Rest(), " rest");
}

TEST(TextCursorTest, RefusesBrokenStrings) {
  const std::pair<std::string, std::string> cases[] = {
      {"\"abc", "f:1:1: this string has no closing quote on its line"},
      {"\"abc\n\"", "f:1:1: this string has no closing quote on its line"},
      {"\"a\\",
       "f:1:3: unknown escape in a string; known are \\\" \\\\ \\n \\t "
       "\\xHH"},
      {"\"a\\q\"",
       "f:1:3: unknown escape in a string; known are \\\" \\\\ \\n "
       "\\t \\xHH"},
      {"\"\\x4\"", "f:1:2: \\x needs two hexadecimal digits"},
      {"\"\\x00\"", "f:1:5: a string cannot hold a NUL byte"},
      {"\"12345\"", "f:1:1: this string is longer than 4 bytes"},
  };
  for (const auto& [text, message] : cases) {
    TextCursor in(text, "f");
    const auto result = in.TakeString(4);
    ASSERT_FALSE(result.ok()) << text;
    EXPECT_EQ(result.status().message(), message);
  }
}

TEST(QuotedTest, ShowsHostileBytesHarmlessly) {
  EXPECT_EQ(Quoted("a b"), "'a b'");
  EXPECT_EQ(Quoted("\x1b[2J\xff"), "'\\x1b[2J\\xff'");
  EXPECT_EQ(Quoted(std::string(1000, 'x')),
            "'" + std::string(40, 'x') + "...'");
}

TEST(SpellingTest, FindsTheNearestKnownWord) {
  constexpr std::array<std::string_view, 5> kKnown = {"read", "readdir",
                                                      "write", "rename", "ab"};
  EXPECT_EQ(NearestWord("wirte", kKnown), "write");
  EXPECT_EQ(NearestWord("READ", kKnown), "read");
  EXPECT_EQ(NearestWord("reed", kKnown), "read");
  EXPECT_EQ(NearestWord("readir", kKnown), "readdir");
  EXPECT_EQ(NearestWord("unlink", kKnown), "");
  EXPECT_EQ(NearestWord("x", kKnown), "");
  EXPECT_EQ(NearestWord("", kKnown), "");
  EXPECT_EQ(NearestWord(std::string(100000, 'r'), kKnown), "");
  EXPECT_EQ(DidYouMean("wirte", kKnown), "; did you mean 'write'?");
  EXPECT_EQ(DidYouMean("unlink", kKnown), "");
}

TEST(UnitsTest, ReadsNumbers) {
  EXPECT_EQ(ParseUnsigned("0"), 0);
  EXPECT_EQ(ParseUnsigned("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(ParseUnsigned("0xffFF"), 0xffff);
  EXPECT_EQ(ParseSize("256K"), 262144);
  EXPECT_EQ(ParseSize("1m"), 1 << 20);
  EXPECT_EQ(ParseSize("0x10"), 16);
  EXPECT_EQ(ParseDuration("250ms"), 250'000'000);
  EXPECT_EQ(ParseDuration("2m"), 120'000'000'000);
  EXPECT_EQ(ParseDuration("0"), 0);
}

TEST(UnitsTest, DurationsMayHaveAFraction) {
  EXPECT_EQ(ParseDuration("0.3s"), 300'000'000);
  EXPECT_EQ(ParseDuration("1.5ms"), 1'500'000);
  EXPECT_EQ(ParseDuration("0.000000001s"), 1);
  EXPECT_EQ(ParseDuration("2.25m"), 135'000'000'000);
  EXPECT_EQ(ParseDuration("0.0000000000025h"), 9);
  EXPECT_EQ(ParseDuration("1.50000000000000000000000000s"), 1'500'000'000);
  for (const char* text :
       {"0.5ns", "0.0000000001s", ".5s", "1.s", "1.5", "1.5.5s", "1.5 s",
        "00.5s", "18446744073.709551616s", "0x1.5s", "1,5s"}) {
    EXPECT_EQ(ParseDuration(text), std::nullopt) << text;
  }
  EXPECT_EQ(ParseDuration("18446744073.709551615s"), UINT64_MAX);
  EXPECT_EQ(ParseSize("1.5M"), std::nullopt);
}

TEST(UnitsTest, SecondsHaveTheirSign) {
  EXPECT_EQ(SecondsText(0), "0.000000000");
  EXPECT_EQ(SecondsText(-1), "-0.000000001");
  EXPECT_EQ(SecondsText(-1'500'000'000), "-1.500000000");
  EXPECT_EQ(SecondsText(1'000'000'001), "1.000000001");
  EXPECT_EQ(SecondsText(INT64_MIN), "-9223372036.854775808");
  EXPECT_EQ(SecondsText(INT64_MAX), "9223372036.854775807");
}

TEST(UnitsTest, RefusesWhatIsNoNumber) {
  for (const char* text : {"", "-1", "+1", " 1", "1 ", "010", "0x", "0xg",
                           "18446744073709551616", "1.5", "abc", "1K"}) {
    EXPECT_EQ(ParseUnsigned(text), std::nullopt) << text;
  }
  for (const char* text :
       {"", "K", "1KB", "1 K", "0x1K", "01K", "18014398509481984K", "-1K"}) {
    EXPECT_EQ(ParseSize(text), std::nullopt) << text;
  }
  for (const char* text :
       {"", "1", "s", "1sec", "01s", "1S", "18446744074s", "0x1s"}) {
    EXPECT_EQ(ParseDuration(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace tracefs
