#include "tracefs/base/text.h"

#include <gtest/gtest.h>

namespace tracefs {
namespace {

TEST(TextTest, TrimTakesBlanksAtBothEnds) {
  EXPECT_EQ(Trim(" \t a b \r\n"), "a b");
  EXPECT_EQ(Trim("a"), "a");
  EXPECT_EQ(Trim(" \n "), "");
  EXPECT_EQ(Trim(""), "");
}

TEST(TextTest, TakeUpToTakesTheSeparatorToo) {
  std::string_view text = "a,,b";
  EXPECT_EQ(TakeUpTo(text, ','), "a");
  EXPECT_EQ(TakeUpTo(text, ','), "");
  EXPECT_EQ(text, "b");
  EXPECT_EQ(TakeUpTo(text, ','), "b");
  EXPECT_EQ(TakeUpTo(text, ','), "");
}

}  // namespace
}  // namespace tracefs
