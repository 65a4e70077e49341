// The buckets of histograms: no value outside its bucket, none far from the
// middle of it.
#include "tracefs/format/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tracefs/format/aggregate.h"

namespace tracefs::format {
namespace {

void Check(uint64_t value) {
  const uint16_t bucket = HistogramBucket(value);
  ASSERT_LT(bucket, kHistogramBuckets) << value;
  ASSERT_LE(HistogramLow(bucket), value);
  ASSERT_GE(HistogramHigh(bucket), value);
  const auto exact = static_cast<double>(value);
  const auto shown = static_cast<double>(HistogramMiddle(bucket));
  ASSERT_LE(std::abs(shown - exact), 0.01 * exact) << value;
}

TEST(HistogramTest, NoValueIsOffByMoreThanOnePercent) {
  for (uint64_t value = 0; value < 300'000; ++value) Check(value);
  for (int bit = 7; bit < 64; ++bit) {
    const uint64_t power = uint64_t{1} << bit;
    for (const uint64_t value : {power - 1, power, power + 1}) Check(value);
  }
  Check(UINT64_MAX);
  std::mt19937_64 random(1);
  for (int i = 0; i < 300'000; ++i) Check(random() >> (random() % 64));
}

TEST(HistogramTest, BucketsFollowEachOtherWithoutAGap) {
  EXPECT_EQ(HistogramLow(0), 0u);
  for (size_t b = 1; b < kHistogramBuckets; ++b) {
    ASSERT_EQ(HistogramLow(static_cast<uint16_t>(b)),
              HistogramHigh(static_cast<uint16_t>(b - 1)) + 1);
  }
  EXPECT_EQ(HistogramHigh(kHistogramBuckets - 1), UINT64_MAX);
}

TEST(HistogramTest, QuantilesAreThoseOfTheSortedValues) {
  std::mt19937_64 random(2);
  std::vector<uint64_t> values;
  std::vector<uint64_t> counts(kHistogramBuckets);
  for (int i = 0; i < 10'000; ++i) {
    values.push_back(random() >> (24 + random() % 30));
    ++counts[HistogramBucket(values.back())];
  }
  std::sort(values.begin(), values.end());
  HistogramRecord histogram{
      .present = true, .sum = 0, .max = values.back(), .buckets = {}};
  for (size_t b = 0; b < counts.size(); ++b) {
    if (counts[b] == 0) continue;
    histogram.buckets.push_back({static_cast<uint16_t>(b), counts[b]});
  }
  for (const double share : {0.01, 0.5, 0.9, 0.99, 0.999, 1.0}) {
    const auto rank =
        static_cast<size_t>(share * static_cast<double>(values.size()));
    const auto exact = static_cast<double>(values[rank - 1]);
    EXPECT_NEAR(static_cast<double>(histogram.Quantile(share)), exact,
                0.01 * exact)
        << share;
  }
  EXPECT_EQ(HistogramRecord{}.Quantile(0.5), 0u);
}

}  // namespace
}  // namespace tracefs::format
