// How wide text is on a terminal, in any script, and what is left of it where
// there is no room.
#include "tracefs/text/cell_width.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tracefs {
namespace {

TEST(CellWidthTest, EveryScriptHasItsWidth) {
  const std::vector<std::pair<std::string, size_t>> texts = {
      {"", 0},          {"abc", 3},  {"12.4 µs", 7},  {"größe", 5},
      {"файл", 4},      {"文件", 4}, {"ファイル", 8}, {"파일", 4},
      {"e\xcc\x81", 1}, {"📁", 2},    {"\xff", 1},     {"ملف", 3}};
  for (const auto& [text, width] : texts) {
    EXPECT_EQ(WidthOf(text), width) << text;
  }
}

TEST(CellWidthTest, WithoutUtf8MicrosecondsHaveAnotherName) {
  EXPECT_EQ(UnitForTerminal("12.4 µs", true), "12.4 µs");
  EXPECT_EQ(UnitForTerminal("12.4 µs", false), "12.4 us");
  EXPECT_EQ(UnitForTerminal("12 ns", false), "12 ns");
}

TEST(CellWidthTest, TextIsPaddedByCells) {
  EXPECT_EQ(PadEnd("文件", 6), "文件  ");
  EXPECT_EQ(PadFront("12.4 µs", 9), "  12.4 µs");
  EXPECT_EQ(PadFront("too wide", 3), "too wide");
}

TEST(CellWidthTest, WhatHasNoRoomLosesItsMiddle) {
  EXPECT_EQ(CutMiddle("/usr/include/stdio.h", 20), "/usr/include/stdio.h");
  EXPECT_EQ(CutMiddle("/usr/include/stdio.h", 11), "/usr/…dio.h");
  for (const std::string text :
       {"/usr/include/stdio.h", "/家/文件/一个很长的名字.txt",
        "e\xcc\x81"
        "e\xcc\x81"
        "x",
        "\xff\xfe\xfd\xfc\xfb"}) {
    for (size_t width = 0; width <= WidthOf(text); ++width) {
      const std::string cut = CutMiddle(text, width);
      EXPECT_LE(WidthOf(cut), width) << text;
      EXPECT_GE(WidthOf(cut) + 2, width) << text;  // half of a wide one
    }
  }
}

}  // namespace
}  // namespace tracefs
