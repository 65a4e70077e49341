// Marks of axes: round numbers that tell one from the next.
#include "tracefs/report/axis.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "tracefs/report/svg.h"

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
  EXPECT_EQ(RoundNumberText(1.5e6), "1.5 M");
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
