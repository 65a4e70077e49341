#include "tracefs/base/text.h"

#include <gtest/gtest.h>

#include <vector>

#include "tracefs/base/choice.h"
#include "tracefs/base/join.h"

namespace tracefs {
namespace {

TEST(TextTest, TrimTakesBlanksAtBothEnds) {
  EXPECT_EQ(Trim(" \t a b \r\n"), "a b");
  EXPECT_EQ(Trim("a"), "a");
  EXPECT_EQ(Trim(" \n "), "");
  EXPECT_EQ(Trim(""), "");
}

TEST(TextTest, IsMadeOfCertainCharactersAlone) {
  EXPECT_TRUE(IsMadeOf("0123456789", kDecimalDigits));
  EXPECT_TRUE(IsMadeOf("deadbeef09", kHexDigits));
  EXPECT_TRUE(IsMadeOf("", kDecimalDigits));
  for (const char* const text : {"1a", "a1", "1 1", " ", "A", "-1"}) {
    EXPECT_FALSE(IsMadeOf(text, kDecimalDigits)) << text;
  }
  EXPECT_FALSE(IsMadeOf("DEAD", kHexDigits));
}

TEST(TextTest, TakeUpToTakesTheSeparatorToo) {
  std::string_view text = "a,,b";
  EXPECT_EQ(TakeUpTo(text, ','), "a");
  EXPECT_EQ(TakeUpTo(text, ','), "");
  EXPECT_EQ(text, "b");
  EXPECT_EQ(TakeUpTo(text, ','), "b");
  EXPECT_EQ(TakeUpTo(text, ','), "");
}

TEST(TextTest, JoinWordsPutsSeparatorsBetween) {
  EXPECT_EQ(JoinWords(std::vector<std::string>(), ", "), "");
  EXPECT_EQ(JoinWords(std::vector<std::string>{"a"}, ", "), "a");
  EXPECT_EQ(JoinWords(std::vector<std::string_view>{"a", "", "b"}, ", "),
            "a, , b");
  EXPECT_EQ(JoinWords(std::vector<int>{1, 2}, "",
                      [](int n) { return std::to_string(n); }),
            "12");
  struct Named {
    std::string name;
  };
  EXPECT_EQ(JoinWords(std::vector<Named>{{"x"}, {"y"}}, " ", &Named::name),
            "x y");
}

TEST(TextTest, AppendWordPutsNoSeparatorFirst) {
  std::string list;
  AppendWord("a", ", ", &list);
  EXPECT_EQ(list, "a");
  AppendWord("b", ", ", &list);
  EXPECT_EQ(list, "a, b");
}

TEST(TextTest, ChoicesAreReadBothWays) {
  constexpr Choice<int> kNumbers[] = {{"one", 1}, {"two", 2}};
  EXPECT_EQ(WordsOf(kNumbers), "one two");
  EXPECT_EQ(WordOf(kNumbers, 2), "two");
  EXPECT_EQ(WordOf(kNumbers, 3), "");
  EXPECT_EQ(WordOf(kNumbers, 3, "many"), "many");
}

}  // namespace
}  // namespace tracefs
