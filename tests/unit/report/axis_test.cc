// Marks of axes: round numbers that tell one from the next.
#include "tracefs/report/axis.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <set>
#include <string>

#include "tracefs/report/svg.h"
#include "tracefs/text/duration.h"
#include "tracefs/text/units.h"

namespace tracefs::report {
namespace {

TEST(AxisTest, StepsAreRoundAndFewEnough) {
  for (double length = 1e-3; length < 1e18; length *= 1.37) {
    for (const int most : {4, 5, 8, 10}) {
      const double step = RoundStep(length, most);
      EXPECT_LE(length / step, most * (1 + 1e-6)) << length;
      // No finer than it has to be.
      EXPECT_GE(length / step, most / 2.5 * (1 - 1e-6)) << length;
      const double digit =
          step / std::pow(10, std::floor(std::log10(step) + 1e-9));
      EXPECT_TRUE(std::abs(digit - 1) < 1e-6 || std::abs(digit - 2) < 1e-6 ||
                  std::abs(digit - 5) < 1e-6)
          << step;
    }
  }
}

TEST(AxisTest, MarksOfTimeDiffer) {
  for (double length = 1; length < 3e18; length *= 1.7) {
    for (const double begin : {0.0, length * 3, length * 255}) {
      const double step = RoundTimeStep(length, 10);
      std::set<std::string> texts;
      const auto marks = Multiples(begin, begin + length, step);
      for (const double ns : marks) texts.insert(TickTimeText(ns, step));
      EXPECT_EQ(texts.size(), marks.size()) << length << " from " << begin;
      EXPECT_LE(marks.size(), 11u);
    }
  }
}

TEST(AxisTest, MarksSayNoMoreThanTheyMust) {
  EXPECT_EQ(TickTimeText(0, 1e6), "0");
  EXPECT_EQ(TickTimeText(2e8, 2e8), "200 ms");
  EXPECT_EQ(TickTimeText(1.2e9, 2e8), "1.2 s");
  EXPECT_EQ(TickTimeText(1.412e9, 2e6), "1.412 s");
  EXPECT_EQ(TickTimeText(90e9, 30e9), "90 s");
  EXPECT_EQ(TickTimeText(150e9, 30e9), "2.5 min");
  EXPECT_EQ(RoundNumberText(0.25), "0.25");
  EXPECT_EQ(RoundNumberText(20000), "20,000");
  EXPECT_EQ(RoundNumberText(1.5e6), "1.5M");
}

TEST(UnitsTest, NumbersHaveThreeDigitsThatAreCut) {
  EXPECT_EQ(DurationText(0), "0 ns");
  EXPECT_EQ(DurationText(999), "999 ns");
  EXPECT_EQ(DurationText(1'000), "1.00 µs");
  EXPECT_EQ(DurationText(125'754), "125 µs");
  EXPECT_EQ(DurationText(9'999'999), "9.99 ms");
  EXPECT_EQ(DurationText(99'999'999), "99.9 ms");
  EXPECT_EQ(DurationText(999'999'999), "999 ms");
  EXPECT_EQ(DurationText(150'000'000'000), "150 s");
  EXPECT_EQ(SpanText(119'999'999'999), "119 s");
  EXPECT_EQ(SpanText(150'000'000'000), "2.50 min");
  EXPECT_EQ(SpanText(7'200'000'000'000), "2.00 h");
  EXPECT_EQ(SizeText(0), "0 B");
  EXPECT_EQ(SizeText(999), "999 B");
  EXPECT_EQ(SizeText(1'000), "1.00 kB");
  EXPECT_EQ(SizeText(1'048'576), "1.04 MB");
  EXPECT_EQ(SizeText(UINT64_MAX), "18.4 EB");
  EXPECT_EQ(ShortNumber(7), "7");
  EXPECT_EQ(ShortNumber(0), "0");
  EXPECT_EQ(ShortNumber(0.256), "0.25");
  EXPECT_EQ(ShortNumber(12'345), "12.3k");
  EXPECT_EQ(ShortNumber(4.56e6), "4.56M");
  EXPECT_EQ(ShortNumber(1'048'576), "1.04M");
  EXPECT_EQ(CountText(0), "0");
  EXPECT_EQ(CountText(999), "999");
  EXPECT_EQ(CountText(1'048'576), "1,048,576");
  EXPECT_EQ(CountText(1, "file", "files"), "1 file");
  EXPECT_EQ(ShareText(999'999, 1'000'000), "99.9 %");
}

// A number of a text with a unit is that of the value, less than one of its
// last digit below it.
TEST(UnitsTest, NoTextTellsMoreThanTheValue) {
  std::mt19937_64 random(5);
  const std::map<std::string, double> units = {
      {" B", 1},     {" kB", 1e3},   {" MB", 1e6},  {" GB", 1e9}, {" TB", 1e12},
      {" PB", 1e15}, {" EB", 1e18},  {" ns", 1},    {" µs", 1e3}, {" ms", 1e6},
      {" s", 1e9},   {" min", 60e9}, {" h", 3600e9}};
  for (int i = 0; i < 20'000; ++i) {
    // As exact as a double is.
    const uint64_t value = (random() >> 11) >> random() % 53;
    for (const std::string& text : {SizeText(value), SpanText(value)}) {
      size_t end = 0;
      const double number = std::stod(text, &end);
      const double unit = units.at(text.substr(end));
      const size_t point = text.find('.');
      const double digit =
          point == std::string::npos
              ? 1
              : std::pow(10, -static_cast<double>(end - point - 1));
      const auto exact = static_cast<double>(value);
      ASSERT_LE(number * unit, exact * (1 + 1e-12)) << text;
      ASSERT_GT((number + digit) * unit, exact * (1 - 1e-12)) << text;
    }
  }
}

TEST(AxisTest, LogarithmicMarksArePowersOfTen) {
  EXPECT_EQ(LogTimeTicks(64, 12'000'000),
            (std::vector<uint64_t>{100, 1000, 10'000, 100'000, 1'000'000,
                                   10'000'000}));
  EXPECT_EQ(LogTimeTicks(800, 6000), (std::vector<uint64_t>{1000, 2000, 5000}));
}

TEST(SvgTest, FittingTextsFit) {
  const std::string text =
      "0e3c4fb35563957b6754ede4d2f116f3MMMMWWWW\u00e4\u4e2d";
  EXPECT_EQ(Fitting(text, 10'000), text);
  for (double width = 0; width < 400; ++width) {
    EXPECT_LE(TextWidth(Fitting(text, width)), width);
  }
  // An ellipsis alone says nothing.
  EXPECT_EQ(Fitting(text, 12), "");
}

}  // namespace
}  // namespace tracefs::report
