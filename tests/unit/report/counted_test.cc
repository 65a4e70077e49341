// What was counted instead of recorded: its tables in words, and when it was.
#include "tracefs/report/counted.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "tracefs/event/op.h"
#include "tracefs/format/constants.h"
#include "tracefs/report/document_parts.h"
#include "tracefs/tally/histogram.h"

namespace tracefs::report {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kBegin = 1'700'000'000 * kSecond;

format::AggregateKeyPart Of(Op op) {
  return {.arg_id = static_cast<uint16_t>(format::ArgId::kKeyOp),
          .number = Index(op),
          .text = {}};
}
format::AggregateKeyPart Of(Field field, uint64_t number) {
  return {.arg_id = Info(field).arg_id, .number = number, .text = {}};
}
format::AggregateKeyPart Of(Field field, std::string_view text) {
  return {.arg_id = Info(field).arg_id, .number = 0, .text = text};
}

// Operations of the seconds [from, to) after the begin.
format::AggregateRecord Record(uint64_t from, uint64_t to, uint64_t count,
                               std::vector<format::AggregateKeyPart> key) {
  format::AggregateRecord record;
  record.tracer_id = 1;
  record.key = std::move(key);
  record.real_from_ns = kBegin + from * kSecond;
  record.real_to_ns = kBegin + to * kSecond;
  record.count = count;
  return record;
}

class CountedTest : public ::testing::Test {
 protected:
  void Add(const format::AggregateRecord& record, size_t trace = 0) {
    collector_->AddCounted(record, trace);
  }
  Json Tables() {
    Json notes = Json::array();
    return CountedAsJson(*collector_, {}, &notes);
  }
  Json Layers() { return CountedLayersAsJson(*collector_, {}); }
  // Operations of all layers in each of `parts` equal parts of the time.
  std::vector<uint64_t> Parts(size_t parts) {
    std::vector<uint64_t> sums(parts);
    for (const Json& layer : Layers()) {
      const Json& bins = layer["bins"];
      for (size_t i = 0; i < bins.size(); ++i) {
        sums[i * parts / bins.size()] += bins[i].get<uint64_t>();
      }
    }
    return sums;
  }

  std::unique_ptr<Collector> collector_ = std::make_unique<Collector>();
};

TEST_F(CountedTest, KeysAreWords) {
  format::AggregateRecord record =
      Record(0, 1, 5,
             {Of(Op::open_), Of(Field::kErrno, 2), Of(Field::kType, 8),
              Of(Field::kComm, "sh"), Of(Field::kUid, 7)});
  record.errors = 5;
  Add(record);
  record = Record(0, 1, 3, {Of(Op::read_), Of(Field::kErrno, 0)});
  Add(record);
  const Json tables = Tables();
  ASSERT_EQ(tables.size(), 1u);
  const Json& table = tables[0];
  EXPECT_EQ(table["by"],
            Json({"operation", "error", "type", "command", "user"}));
  EXPECT_EQ(table["title"], "by operation, error, type, command and user");
  // Nothing of what was not counted.
  EXPECT_EQ(table["values"], Json({"count", "errors"}));
  EXPECT_EQ(table["rows"], Json({{"open", "ENOENT", "file", "sh", "7", 5, 5},
                                 {"read", "(no error)", "-", "-", "-", 3, 0}}));
  EXPECT_EQ(table["sum"], Json({8, 5}));
}

TEST_F(CountedTest, ManySmallCountsOfOnePeriodHaveOneRate) {
  for (uint64_t uid = 0; uid < 300; ++uid) {
    Add(Record(0, 10, 7, {Of(Op::read_), Of(Field::kUid, uid)}));
    Add(Record(0, 10, 3, {Of(Op::write_), Of(Field::kUid, uid)}));
    Add(Record(0, 10, 1, {Of(Op::fsync_), Of(Field::kUid, uid)}));
  }
  const std::vector<uint64_t> parts = Parts(20);
  EXPECT_EQ(std::accumulate(parts.begin(), parts.end(), uint64_t{0}), 3300u);
  const auto [least, most] = std::minmax_element(parts.begin(), parts.end());
  EXPECT_LE(*most - *least, 30u);
}

TEST_F(CountedTest, LayersAreOperations) {
  Add(Record(0, 1, 7, {Of(Op::read_), Of(Field::kUid, 1)}));
  Add(Record(0, 1, 5, {Of(Op::read_), Of(Field::kUid, 2)}));
  Add(Record(0, 1, 2, {Of(Op::open_), Of(Field::kUid, 2)}));
  format::AggregateRecord other = Record(0, 1, 4, {});
  other.other = true;
  Add(other);
  std::map<std::string, uint64_t> counts;
  for (const Json& layer : Layers()) {
    counts[layer["name"]] = layer["count"].get<uint64_t>();
  }
  EXPECT_EQ(counts, (std::map<std::string, uint64_t>{
                        {"read", 12}, {"open", 2}, {"other keys", 4}}));
}

TEST_F(CountedTest, TwoDriversOfOneTraceAreNotAdded) {
  Add(Record(0, 1, 7, {Of(Field::kUid, 1)}));
  format::AggregateRecord second = Record(0, 1, 7, {Of(Op::read_)});
  second.aggregate = 2;
  Add(second);
  const Json layers = Layers();
  ASSERT_EQ(layers.size(), 1u);
  EXPECT_EQ(layers[0]["name"], "read");
  EXPECT_EQ(layers[0]["count"], 7);
  EXPECT_EQ(Tables().size(), 2u);
}

TEST_F(CountedTest, TotalsHaveAllThatWasToldBefore) {
  for (const uint64_t seconds : {10, 20}) {
    format::AggregateRecord record =
        Record(0, seconds, 100 * seconds, {Of(Op::read_)});
    record.total = true;
    Add(record);
  }
  EXPECT_EQ(Tables()[0]["sum"], Json({2000}));
  EXPECT_EQ(Layers()[0]["count"], 2000);
  const std::vector<uint64_t> parts = Parts(4);
  for (const uint64_t part : parts) EXPECT_NEAR(part, 500, 20);
  // After periods they are all the same operations again.
  Add(Record(0, 20, 2000, {Of(Op::read_)}), 1);
  format::AggregateRecord total = Record(0, 20, 2000, {Of(Op::read_)});
  total.total = true;
  Add(total, 1);
  EXPECT_EQ(Tables()[1]["sum"], Json({2000}));
  EXPECT_EQ(Layers()[0]["count"], 4000);
}

TEST_F(CountedTest, DataLoss_EachTraceHasItsOwnTotals) {
  // One trace was cut before its totals: what it told is not forgotten.
  Add(Record(0, 5, 50, {Of(Op::open_)}), 0);
  format::AggregateRecord total = Record(0, 5, 70, {Of(Op::read_)});
  total.total = true;
  Add(total, 1);
  const Json tables = Tables();
  ASSERT_EQ(tables.size(), 2u);
  EXPECT_EQ(tables[0]["sum"], Json({50}));
  EXPECT_EQ(tables[1]["sum"], Json({70}));
}

TEST_F(CountedTest, HistogramsOfPeriodsAreOne) {
  std::vector<uint64_t> values;
  for (uint64_t period = 0; period < 3; ++period) {
    format::AggregateRecord record =
        Record(period, period + 1, 40, {Of(Op::read_)});
    record.latency.present = true;
    std::map<uint16_t, uint64_t> buckets;
    for (uint64_t i = 0; i < 40; ++i) {
      const uint64_t ns = 100 + (i * 37 + period * 1009) % 5000;
      values.push_back(ns);
      ++buckets[tally::HistogramBucket(ns)];
      record.latency.sum += ns;
      record.latency.max = std::max(record.latency.max, ns);
    }
    for (const auto& [bucket, count] : buckets) {
      record.latency.buckets.push_back({bucket, count});
    }
    Add(record);
  }
  std::sort(values.begin(), values.end());
  const Json table = Tables()[0];
  EXPECT_EQ(table["values"],
            Json({"count", "time_ns", "p50_ns", "p99_ns", "longest_ns"}));
  const Json& row = table["rows"][0];
  EXPECT_EQ(row[2], std::accumulate(values.begin(), values.end(), uint64_t{0}));
  EXPECT_NEAR(row[3].get<double>(), static_cast<double>(values[59]),
              0.008 * static_cast<double>(values[59]) + 1);
  EXPECT_EQ(row[5], values.back());
}

TEST_F(CountedTest, Malicious_MoreKeysThanThereIsRoomForAreInOthers) {
  constexpr uint64_t kKeys = Counted::kMostKeys + 1000;
  for (uint64_t uid = 0; uid < kKeys; ++uid) {
    Add(Record(0, 1, 1, {Of(Field::kUid, uid)}));
  }
  const Json table = Tables()[0];
  EXPECT_EQ(table["sum"], Json({kKeys}));
  EXPECT_EQ(table["rows"].size() + table["other"][0].get<uint64_t>(), kKeys);
}

}  // namespace
}  // namespace tracefs::report
