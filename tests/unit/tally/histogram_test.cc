// Histograms against the sorted values themselves.
#include "tracefs/tally/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace tracefs::tally {
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

// Values of all sizes: a few, many, equal ones, and the ends of the range.
std::vector<std::vector<uint64_t>> Samples() {
  std::mt19937_64 random(2);
  std::vector<std::vector<uint64_t>> samples = {
      {0}, {1}, {UINT64_MAX}, {0, UINT64_MAX}, {1000, 1001, 1002}};
  for (const size_t size : {2, 3, 7, 99, 100, 101, 1000, 10'000}) {
    for (int i = 0; i < 20; ++i) {
      std::vector<uint64_t> values;
      while (values.size() < size) values.push_back(random() >> random() % 64);
      samples.push_back(values);
      // All in one bucket or two.
      for (uint64_t& value : values) value = 1'000'000 + value % 9000;
      samples.push_back(values);
    }
  }
  return samples;
}

// The definition, by sorting; `p` in ten thousandths, so that it is exact.
uint64_t SlowQuantile(std::vector<uint64_t> values, uint64_t p) {
  std::sort(values.begin(), values.end());
  const uint64_t rank = (values.size() * p + 9999) / 10'000;
  return values[std::max<uint64_t>(rank, 1) - 1];
}

constexpr uint64_t kShares[] = {0,    1,    100,  700,  2500, 5000,
                                9000, 9500, 9900, 9990, 9999, 10'000};

TEST(HistogramTest, QuantilesAreThoseOfTheSortedValues) {
  for (const std::vector<uint64_t>& values : Samples()) {
    Histogram all;
    SparseHistogram sparse;
    for (const uint64_t value : values) {
      all.Add(value);
      sparse.Add(value);
    }
    const auto [min, max] = std::ranges::minmax(values);
    EXPECT_EQ(all.count(), values.size());
    EXPECT_EQ(sparse.Count(), values.size());
    EXPECT_EQ(all.min(), min);
    EXPECT_EQ(all.max(), max);
    for (const uint64_t p : kShares) {
      const double share = static_cast<double>(p) / 10'000;
      const uint64_t exact = SlowQuantile(values, p);
      const uint64_t found = all.Quantile(share);
      // Never in another bucket than the exact one, and so never 1 % off.
      ASSERT_EQ(HistogramBucket(found), HistogramBucket(exact))
          << p << " of " << values.size();
      ASSERT_GE(found, min);
      ASSERT_LE(found, max);
      // However they are kept.
      ASSERT_EQ(sparse.Quantile(share, {min, max}), found);
    }
  }
}

TEST(HistogramTest, WhatIsNotKnownOfTheEndsMovesAQuantileWithinItsBucketOnly) {
  for (const std::vector<uint64_t>& values : Samples()) {
    SparseHistogram sparse;
    for (const uint64_t value : values) sparse.Add(value);
    for (const uint64_t p : kShares) {
      const uint64_t found = sparse.Quantile(static_cast<double>(p) / 1e4, {});
      ASSERT_EQ(HistogramBucket(found),
                HistogramBucket(SlowQuantile(values, p)));
    }
  }
}

TEST(HistogramTest, TwoPutTogetherAreOneOfAllTheirValues) {
  const std::vector<std::vector<uint64_t>> samples = Samples();
  for (size_t i = 1; i < samples.size(); ++i) {
    Histogram parts[3], all;
    SparseHistogram sparse_parts[3], sparse_all;
    for (const size_t part : {0, 1}) {
      for (const uint64_t value : samples[i - part]) {
        parts[part].Add(value);
        all.Add(value);
        sparse_parts[part].Add(value);
        sparse_all.Add(value);
      }
      parts[2].Add(parts[part]);
      sparse_parts[2].Add(sparse_parts[part]);
    }
    parts[2].Add(Histogram());
    EXPECT_EQ(parts[2].count(), all.count());
    EXPECT_EQ(parts[2].sum(), all.sum());
    EXPECT_EQ(parts[2].min(), all.min());
    EXPECT_EQ(parts[2].max(), all.max());
    for (const uint64_t p : kShares) {
      const double share = static_cast<double>(p) / 10'000;
      ASSERT_EQ(parts[2].Quantile(share), all.Quantile(share));
      ASSERT_EQ(sparse_parts[2].Quantile(share, {}),
                sparse_all.Quantile(share, {}));
    }
  }
}

TEST(HistogramTest, NothingHasNoQuantile) {
  EXPECT_EQ(Histogram().Quantile(0.5), 0u);
  EXPECT_EQ(SparseHistogram().Quantile(0.5, {}), 0u);
}

TEST(HistogramTest, Malicious_CountsAndBucketsMayBeAnything) {
  SparseHistogram histogram;
  histogram.AddBucket(UINT16_MAX, 1);  // there is none
  EXPECT_EQ(histogram.Count(), 0u);
  for (int i = 0; i < 3; ++i) {
    histogram.AddBucket(5, UINT64_MAX);
    histogram.AddBucket(7, 1);
  }
  EXPECT_EQ(histogram.Quantile(0.5, {}), 5u);
  EXPECT_EQ(histogram.Quantile(1, {}), 7u);
}

}  // namespace
}  // namespace tracefs::tally
