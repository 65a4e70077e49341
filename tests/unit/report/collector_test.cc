#include "tracefs/report/collector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

namespace tracefs::report {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kBegin = 1'700'000'000 * kSecond;

std::vector<uint64_t> CountedBins(
    const std::vector<format::AggregateRecord>& records) {
  const auto collector = std::make_unique<Collector>();
  for (const format::AggregateRecord& record : records) {
    collector->AddCounted(record, 0);
  }
  const std::vector<CountedTable*> tables = collector->counted();
  return tables.at(0)->bins.at("").Numbers(collector->grid().fine());
}

format::AggregateRecord OfPeriod(uint64_t from_ns, uint64_t to_ns,
                                 uint64_t count) {
  format::AggregateRecord record;
  record.real_from_ns = from_ns;
  record.real_to_ns = to_ns;
  record.count = count;
  return record;
}

TEST(CollectorTest, WhatWasCountedInAPeriodHasOneRateInIt) {
  std::vector<format::AggregateRecord> records;
  for (uint64_t i = 0; i < 20; ++i) {
    records.push_back(OfPeriod(kBegin + 5 * i * kSecond,
                               kBegin + 5 * (i + 1) * kSecond, 1'000'003));
  }
  const std::vector<uint64_t> bins = CountedBins(records);
  EXPECT_EQ(std::accumulate(bins.begin(), bins.end(), uint64_t{0}),
            20u * 1'000'003);
  // The first and the last one are shared with a time outside.
  const auto [least, most] =
      std::minmax_element(bins.begin() + 1, bins.end() - 1);
  EXPECT_LE(*most, 3 * *least);
}

TEST(CollectorTest, Malicious_PeriodsThatEndBeforeTheyBeginAreCounted) {
  for (const uint64_t to : {uint64_t{0}, kBegin, kBegin + 1, UINT64_MAX}) {
    const std::vector<uint64_t> bins = CountedBins({OfPeriod(kBegin, to, 7)});
    EXPECT_EQ(std::accumulate(bins.begin(), bins.end(), uint64_t{0}), 7u) << to;
  }
}

}  // namespace
}  // namespace tracefs::report
