#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <vector>

#include "tracefs/report/latency.h"
#include "tracefs/report/series.h"
#include "tracefs/report/time_grid.h"

namespace tracefs::report {
namespace {

std::vector<uint64_t> Times(uint64_t seed, size_t count, uint64_t span) {
  std::mt19937_64 random(seed);
  std::vector<uint64_t> times;
  for (size_t i = 0; i < count; ++i) {
    times.push_back(1'767'000'000'000'000'000 + random() % span);
  }
  return times;
}

TEST(TimeGridTest, BinsDoNotDependOnTheOrderOfTimes) {
  for (const uint64_t span : {1ull, 5'000ull, 3'000'000'000ull, 1ull << 61}) {
    std::vector<uint64_t> times = Times(span, 2000, span);
    std::vector<std::vector<uint64_t>> results;
    for (int order = 0; order < 3; ++order) {
      if (order == 1) std::sort(times.begin(), times.end());
      if (order == 2) std::reverse(times.begin(), times.end());
      TimeGrid grid;
      BinRow fine;
      BinRow coarse;
      for (const uint64_t time : times) {
        grid.Reach(time);
        ++fine.At(grid.fine(), time);
        ++coarse.At(grid.coarse(), time);
      }
      EXPECT_LE(grid.fine().size, TimeGrid::kMostBins);
      EXPECT_LE(grid.coarse().size, TimeGrid::kMostBins / 4 + 1);
      results.push_back(fine.Numbers(grid.fine()));
      // The slow way, when all is known.
      std::vector<uint64_t> slow(grid.coarse().size);
      for (const uint64_t time : times) ++slow[grid.coarse().Of(time)];
      EXPECT_EQ(coarse.Numbers(grid.coarse()), slow);
    }
    EXPECT_EQ(results[0], results[1]);
    EXPECT_EQ(results[0], results[2]);
  }
}

TEST(TimeGridTest, EndsOfTimeAreNoTrouble) {
  TimeGrid grid;
  BinRow row;
  for (const uint64_t time : {uint64_t{5}, UINT64_MAX, uint64_t{0}}) {
    grid.Reach(time);
    ++row.At(grid.fine(), time);
  }
  uint64_t sum = 0;
  for (const uint64_t number : row.Numbers(grid.fine())) sum += number;
  EXPECT_EQ(sum, 3u);
}

TEST(SeriesTest, PointsAreThoseOfAMapWhateverTheWidthWas) {
  std::mt19937_64 random(9);
  Series series;
  std::map<uint64_t, uint64_t> counts;
  int shift = 10;
  const std::vector<uint64_t> times = Times(4, 3000, 1 << 24);
  for (size_t i = 0; i < times.size(); ++i) {
    if (i % 500 == 499) ++shift;
    series.Add(times[i], shift, {.count = 1, .time_ns = 3});
  }
  shift += 2;
  for (const uint64_t time : times) ++counts[time >> shift];
  const auto& points = series.Points(shift);
  ASSERT_EQ(points.size(), counts.size());
  auto expected = counts.begin();
  for (const SeriesPoint& point : points) {
    EXPECT_EQ(point.bin, expected->first);
    EXPECT_EQ(point.count, expected->second);
    EXPECT_EQ(point.time_ns, 3 * expected->second);
    ++expected;
  }
}

TEST(LatencyRowsTest, RowsBeginWhereTheySay) {
  for (size_t row = 1; row < kLatencyRows; ++row) {
    const uint64_t begin = LatencyRowBegin(row);
    EXPECT_EQ(LatencyRowOf(begin), row);
    EXPECT_EQ(LatencyRowOf(begin - 1), row - 1);
  }
  EXPECT_EQ(LatencyRowOf(0), 0u);
  EXPECT_EQ(LatencyRowOf(UINT64_MAX), kLatencyRows - 1);
}

}  // namespace
}  // namespace tracefs::report
