#include "tracefs/query/difference.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tracefs::query {
namespace {

constexpr double kMs = 1e6;

std::vector<std::string> Ranked(std::vector<Difference> all) {
  RankDifferences(&all);
  std::vector<std::string> names;
  for (const Difference& d : all) names.push_back(d.name);
  return names;
}

std::string Sentence(std::vector<Difference> all) {
  RankDifferences(&all);
  return DifferenceSentence(all);
}

Difference New(std::string name, double ns, double count) {
  return {.name = std::move(name),
          .time_b_ns = ns,
          .count_b = count,
          .in_a = false};
}

Difference Gone(std::string name, double ns, double count) {
  return {.name = std::move(name),
          .time_a_ns = ns,
          .count_a = count,
          .in_b = false};
}

Difference Both(std::string name, double a_ns, double b_ns, double a,
                double b) {
  return {.name = std::move(name),
          .time_a_ns = a_ns,
          .time_b_ns = b_ns,
          .count_a = a,
          .count_b = b};
}

TEST(DifferenceTest, AbsoluteTimeRanksAndNotTheFactor) {
  EXPECT_EQ(Ranked({Both("open", 1000, 900000, 1, 1),  // 900 times as long
                    Both("write", 100 * kMs, 106 * kMs, 10, 10),
                    Both("read", 9 * kMs, 4 * kMs, 10, 10)}),
            (std::vector<std::string>{"write", "read", "open"}));
}

TEST(DifferenceTest, NewAndGoneOnesAreRankedWithTheRest) {
  EXPECT_EQ(Ranked({Both("open", 1 * kMs, 4 * kMs, 1, 1),
                    New("fsync", 365 * kMs, 100), Gone("poll", 2 * kMs, 7),
                    New("lseek", 1 * kMs, 900)}),
            (std::vector<std::string>{"fsync", "open", "poll", "lseek"}));
}

TEST(DifferenceTest, CountsDecideWhereTimesDoNot) {
  EXPECT_EQ(Ranked({Both("a", 5, 5, 10, 12), Gone("b", 0, 9), New("c", 0, 4),
                    Both("d", 7, 7, 3, 3), Both("e", 8, 8, 3, 3)}),
            (std::vector<std::string>{"b", "c", "a", "d", "e"}));
}

TEST(DifferenceTest, TheSentenceBeginsWithWhatAccountsForMost) {
  EXPECT_EQ(
      Sentence({New("fsync", 365 * kMs, 12),
                Both("write", 4 * kMs, 8 * kMs, 60, 60),
                Both("open", 1 * kMs, 2 * kMs, 40, 40)}),
      "The operations took 370 ms longer in B (375 ms) than in A (5.00 ms, "
      "+7400.0 %): fsync +365 ms (new), 2 others +5.00 ms. B has 12 "
      "operations more: 112, not 100.");
}

TEST(DifferenceTest, ItsPartsAddUpWhicheverWayTheyGo) {
  EXPECT_EQ(Sentence({Both("a", 100 * kMs, 40 * kMs, 1, 1),
                      Both("b", 10 * kMs, 50 * kMs, 1, 1),
                      Gone("c", 30 * kMs, 2), Both("d", 0, 20 * kMs, 1, 1),
                      Both("e", 9 * kMs, 3 * kMs, 1, 1)}),
            "The operations took 36.0 ms less in B (113 ms) than in A (149 ms, "
            "-24.2 %): a -60.0 ms, b +40.0 ms, c -30.0 ms (gone), 2 others "
            "+14.0 ms. B has 2 operations fewer: 4, not 6.");
}

TEST(DifferenceTest, NothingToTellIsSaidToo) {
  EXPECT_EQ(Sentence({Both("a", 5 * kMs, 5 * kMs, 3, 3)}),
            "The operations took as long in B as in A (5.00 ms). Both have 3 "
            "operations.");
  EXPECT_EQ(Sentence({}),
            "No time is known of any operation. Both have 0 operations.");
  EXPECT_EQ(Sentence({New("a", 0, 1)}),
            "No time is known of any operation. B has 1 operation more: 1, "
            "not 0.");
}

TEST(DifferenceTest, TheMeansOfSeveralRunsNeedNotBeWhole) {
  EXPECT_EQ(
      Sentence({Both("a", 1.4, 1.4, 1.5, 2.5)}),
      "The operations took as long in B as in A (1 ns). B has 1 operation "
      "more: 3, not 2.");
}

}  // namespace
}  // namespace tracefs::query
