// Rates against a model that has a number for each period there was.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "tests/unit/query/told_operations.h"
#include "tracefs/tally/histogram.h"

namespace tracefs::query {
namespace {

constexpr uint64_t kPeriods[] = {100'000'000, 1'000'000'000, 10'000'000'000,
                                 60'000'000'000};

// `all` begins with an operation in the first period alone that has most bytes.
void ExpectAsTheModel(const std::vector<ToldOperation>& all) {
  const auto analysis = MakeRates({});
  const Table table = AskOf(analysis.get(), all).at(0);
  ASSERT_EQ(table.rows.size(), std::size(kPeriods));
  const uint64_t begin_ns = NumberAt(table, 0, "most_bytes");
  for (size_t i = 0; i < std::size(kPeriods); ++i) {
    std::map<uint64_t, uint64_t> counts;
    std::map<uint64_t, uint64_t> bytes;
    for (const ToldOperation& told : all) {
      ++counts[told.since_ns / kPeriods[i]];
      bytes[told.since_ns / kPeriods[i]] += told.bytes;
    }
    const uint64_t periods = all.back().since_ns / kPeriods[i] + 1;
    std::vector<uint64_t> each(periods, 0);
    for (const auto& [period, count] : counts) each[period] = count;
    const auto most = std::max_element(each.begin(), each.end());
    EXPECT_EQ(NumberAt(table, i, "period"), kPeriods[i]);
    EXPECT_EQ(NumberAt(table, i, "periods"), periods);
    EXPECT_EQ(NumberAt(table, i, "count_mean"), all.size() / periods);
    EXPECT_EQ(NumberAt(table, i, "count_max"), *most);
    // The first of those with most, since the first operation.
    EXPECT_EQ(NumberAt(table, i, "busiest") - begin_ns,
              static_cast<uint64_t>(most - each.begin()) * kPeriods[i]);
    uint64_t most_bytes = 0;
    for (const auto& [period, sum] : bytes) {
      most_bytes = std::max(most_bytes, sum);
    }
    EXPECT_EQ(NumberAt(table, i, "bytes_max"), most_bytes);
    std::sort(each.begin(), each.end());
    for (const auto& [column, share] : {std::pair{"count_p50", 0.5},
                                        {"count_p90", 0.9},
                                        {"count_p99", 0.99}}) {
      const uint64_t exact = each[tally::QuantileRank(share, each.size()) - 1];
      EXPECT_EQ(tally::HistogramBucket(NumberAt(table, i, column)),
                tally::HistogramBucket(exact))
          << column << " of " << kPeriods[i];
    }
  }
}

TEST(RatesTest, CountWhatThereIsInEachPeriod) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 20; ++round) {
    std::vector<ToldOperation> all = {{.bytes = 1 << 30}};
    uint64_t now = 0;
    for (int i = 0; i < 400; ++i) {
      // Bursts, and long times with nothing.
      now +=
          random() % 20 == 0 ? random() % 8'000'000'000 : random() % 1'000'000;
      all.push_back({.since_ns = now, .ns = 1, .bytes = random() % 5000});
    }
    ExpectAsTheModel(all);
  }
}

TEST(RatesTest, EndsOfPeriodsBelongToTheNext) {
  ExpectAsTheModel({{.since_ns = 0, .bytes = 100},
                    {.since_ns = 99'999'999, .bytes = 7},
                    {.since_ns = 100'000'000, .bytes = 7},
                    {.since_ns = 199'999'999, .bytes = 1},
                    {.since_ns = 1'000'000'000},
                    {.since_ns = 60'000'000'000}});
}

TEST(RatesTest, NothingHasNoRate) {
  const auto analysis = MakeRates({});
  EXPECT_TRUE(analysis->Finish().at(0).rows.empty());
}

}  // namespace
}  // namespace tracefs::query
