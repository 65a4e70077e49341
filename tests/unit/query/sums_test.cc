// The arithmetic of answers against slow models: sums, means, quantiles, shares
// and periods of groups, rates and histograms; of what traces have, and of what
// only liars write into them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/support/read_records.h"
#include "tests/support/trace_builder.h"
#include "tracefs/query/analyses.h"
#include "tracefs/query/grouping.h"
#include "tracefs/query/histogram_rows.h"
#include "tracefs/query/pictures.h"
#include "tracefs/tally/histogram.h"

namespace tracefs::query {
namespace {

using test::TraceBuilder;

constexpr uint64_t kMs = 1'000'000;

// What is told of one operation.
struct Told {
  Op op = Op::read_;
  uint64_t since_ns = 0;  // since the first one
  uint64_t ns = 0;
  int64_t result = 0;
  int error = 0;
  uint64_t inode = 1;
  bool before = false;
};

void ForEach(const std::vector<Told>& all,
             const std::function<void(const format::Record&)>& use) {
  TraceBuilder trace;
  for (const Told& told : all) {
    Event event;
    event.op = told.op;
    event.before = told.before;
    event.Set(Field::kTime, TraceBuilder::kMonotonicNs + told.since_ns);
    event.Set(Field::kInode, told.inode);
    if (!told.before) {
      event.Set(Field::kLatency, told.ns);
      event.SetResult(told.error == 0 ? told.result : -1, told.error);
    }
    trace.Add(event);
  }
  trace.EndBlock();
  test::ReadRecords(trace.bytes(), use);
}

using Numbers = std::map<std::string, Value>;

// By the texts of keys, with blanks between: the values by their names.
std::map<std::string, Numbers> Ask(const std::vector<Told>& all,
                                   std::string_view keys,
                                   std::string_view values,
                                   uint64_t every_ns = 0) {
  Grouping grouping({.keys = *ParseGroupKeys(keys, "--by"),
                     .values = *ParseGroupValues(values, "--values"),
                     .every_ns = every_ns});
  ForEach(all,
          [&](const format::Record& record) { grouping.AddRecord(record, 0); });
  const Table table = grouping.Finish();
  const size_t parts = grouping.spec().keys.size();
  std::map<std::string, Numbers> answer;
  for (const Row& row : table.rows) {
    std::string key;
    for (size_t i = 0; i < parts; ++i) {
      key +=
          (i == 0 ? "" : " ") +
          (row[i].text.empty() ? std::to_string(row[i].number) : row[i].text);
    }
    for (size_t i = parts; i < row.size(); ++i) {
      answer[key][table.columns[i].name] = row[i];
    }
  }
  return answer;
}

std::vector<Told> RandomWork(size_t count, std::mt19937_64& random) {
  std::vector<Told> all;
  uint64_t now = 0;
  for (size_t i = 0; i < count; ++i) {
    // Many begin at the same time; some take none.
    if (random() % 3 != 0) now += random() % kMs;
    Told& told = all.emplace_back();
    told.op = random() % 3 == 0 ? Op::write_ : Op::read_;
    told.since_ns = now;
    told.ns = random() % 5 == 0 ? 0 : random() % (uint64_t{1} << random() % 40);
    told.error = random() % 7 == 0 ? EIO : 0;
    told.result = static_cast<int64_t>(random() % 10'000);
    told.inode = 1 + random() % 90;  // more groups than a word has bits
    told.before = random() % 11 == 0;
  }
  return all;
}

struct Model {
  uint64_t count = 0, errors = 0, bytes = 0, before = 0, time = 0;
  std::vector<uint64_t> times;

  void Add(const Told& told) {
    if (told.before) {
      ++before;
      return;
    }
    ++count;
    errors += told.error != 0;
    if (told.error == 0) bytes += static_cast<uint64_t>(told.result);
    times.push_back(told.ns);
    time += told.ns;
  }
  // Of n values in order the one at ceil(share * n).
  uint64_t Quantile(double share) {
    std::ranges::sort(times);
    const auto rank = static_cast<size_t>(
        std::ceil(share * static_cast<double>(times.size()) - 1e-9));
    return times[std::max<size_t>(rank, 1) - 1];
  }
};

void ExpectIs(Numbers found, Model model, uint64_t all_count,
              uint64_t all_time) {
  EXPECT_EQ(found["count"].number, model.count);
  EXPECT_EQ(found["errors"].number, model.errors);
  EXPECT_EQ(found["bytes"].number, model.bytes);
  EXPECT_EQ(found["before"].number, model.before);
  EXPECT_DOUBLE_EQ(found["share"].share, static_cast<double>(model.count) /
                                             static_cast<double>(all_count));
  if (model.times.empty()) {
    for (const char* const name : {"time", "mean", "min", "p50", "max"}) {
      EXPECT_FALSE(found[name].present) << name;
    }
    return;
  }
  EXPECT_EQ(found["time"].number, model.time);
  EXPECT_DOUBLE_EQ(
      found["time_share"].share,
      static_cast<double>(model.time) / static_cast<double>(all_time));
  EXPECT_EQ(found["mean"].number, model.time / model.times.size());
  EXPECT_EQ(found["min"].number, std::ranges::min(model.times));
  EXPECT_EQ(found["max"].number, std::ranges::max(model.times));
  for (const auto& [name, share] :
       {std::pair{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p999", 0.999}}) {
    EXPECT_EQ(tally::HistogramBucket(found[name].number),
              tally::HistogramBucket(model.Quantile(share)))
        << name << " " << found[name].number;
  }
}

constexpr char kValues[] =
    "count,errors,bytes,time,mean,min,p50,p90,p99,p999,max,share,time_share,"
    "before";

TEST(SumsOfGroupsTest, AreThoseOfASlowModel) {
  std::mt19937_64 random(11);
  for (const size_t count : {1, 2, 100, 5000}) {
    const std::vector<Told> all = RandomWork(count, random);
    std::map<std::string, Model> model;
    uint64_t ran = 0;
    uint64_t time = 0;
    for (const Told& told : all) {
      model[std::to_string(told.inode) + " " + std::string(OpName(told.op))]
          .Add(told);
      if (told.before) continue;
      ++ran;
      time += told.ns;
    }
    const auto found = Ask(all, "inode,op", kValues);
    ASSERT_EQ(found.size(), model.size());
    if (count == 5000) {
      EXPECT_GT(found.size(), 64u);
    }
    for (const auto& [key, one] : model) {
      SCOPED_TRACE(key);
      ASSERT_TRUE(found.contains(key));
      if (ran != 0 && time != 0) ExpectIs(found.at(key), one, ran, time);
    }
  }
}

TEST(SumsOfGroupsTest, OfPeriodsBelongToTheOneTheyBeganIn) {
  std::mt19937_64 random(12);
  const std::vector<Told> all = RandomWork(3000, random);
  std::map<std::string, uint64_t> model;
  for (const Told& told : all) {
    if (told.before) continue;
    const uint64_t real = TraceBuilder::kRealNs + told.since_ns;
    ++model[std::to_string(real - real % (7 * kMs)) + " " +
            std::string(OpName(told.op))];
  }
  std::map<std::string, uint64_t> found;
  for (auto& [key, numbers] : Ask(all, "op", "count", 7 * kMs)) {
    found[key] = numbers["count"].number;
  }
  EXPECT_EQ(found, model);
  EXPECT_GT(found.size(), 100u);
}

TEST(SumsOfGroupsTest, WithoutDurationsHaveNoShareOfTime) {
  auto found = Ask({{.ns = 0}, {.ns = 0}}, "op", "time,mean,p99,time_share");
  EXPECT_EQ(found["read"]["time"].number, 0u);
  EXPECT_EQ(found["read"]["mean"].number, 0u);
  EXPECT_EQ(found["read"]["p99"].number, 0u);
  EXPECT_FALSE(found["read"]["time_share"].present);
}

TEST(SumsOfGroupsTest, Malicious_StopAtTheTop) {
  std::vector<Told> all(5, {.ns = UINT64_MAX - 1, .result = INT64_MAX});
  all.push_back({.op = Op::write_, .ns = 1, .result = 1});
  auto found = Ask(all, "op", "bytes,read,time,mean,min,p50,max,time_share");
  auto& read = found["read"];
  EXPECT_EQ(read["bytes"].number, UINT64_MAX);
  EXPECT_EQ(read["read"].number, UINT64_MAX);
  EXPECT_EQ(read["time"].number, UINT64_MAX);
  EXPECT_EQ(read["mean"].number, UINT64_MAX / 5);
  for (const char* const name : {"min", "p50", "max"}) {
    EXPECT_EQ(read[name].number, UINT64_MAX - 1) << name;
  }
  EXPECT_LE(read["time_share"].share, 1.0);
  EXPECT_GT(read["time_share"].share, 0.99);
}

// The rows of an analysis, by their first cell.
std::map<std::string, Row> Analyse(std::string_view name,
                                   const std::vector<Told>& all) {
  const auto analysis = FindAnalysis(name)->make({});
  ForEach(all,
          [&](const format::Record& record) { analysis->Take(record, 0); });
  std::map<std::string, Row> rows;
  const std::vector<Table> tables = analysis->Finish();
  for (const Row& row : tables.front().rows) {
    rows[row[0].text.empty() ? std::to_string(row[0].number) : row[0].text] =
        row;
  }
  return rows;
}

TEST(RatesTest, CountWhatBeganInEachPeriodAlsoWhereNothingDid) {
  // Four in the first tenth of a second, one in the 26th, and as many at the
  // same time in the last one as before.
  std::vector<Told> all;
  for (const uint64_t ms : {0, 1, 99, 99})
    all.push_back({.since_ns = ms * kMs});
  all.push_back({.since_ns = 2550 * kMs, .result = 70});
  for (int i = 0; i < 4; ++i) all.push_back({.since_ns = 2900 * kMs});
  const auto rows = Analyse("rates", all);
  const Row& tenths = rows.at(std::to_string(100 * kMs));
  EXPECT_EQ(tenths[1].number, 30u);                    // periods
  EXPECT_EQ(tenths[2].number, 0u);                     // 9 in 30
  EXPECT_EQ(tenths[3].number, 0u);                     // p50
  EXPECT_EQ(tenths[5].number, 4u);                     // p99
  EXPECT_EQ(tenths[6].number, 4u);                     // most
  EXPECT_EQ(tenths[7].number, TraceBuilder::kRealNs);  // of equals, first
  EXPECT_EQ(tenths[8].number, 70u);
  EXPECT_EQ(tenths[9].number, TraceBuilder::kRealNs + 2500 * kMs);
  const Row& seconds = rows.at(std::to_string(1000 * kMs));
  EXPECT_EQ(seconds[1].number, 3u);
  EXPECT_EQ(seconds[2].number, 3u);
  EXPECT_EQ(seconds[6].number, 5u);
  EXPECT_EQ(seconds[7].number, TraceBuilder::kRealNs + 2000 * kMs);
  EXPECT_EQ(Analyse("rates", {}).size(), 0u);
}

TEST(RatesTest, Malicious_BytesStopAtTheTop) {
  const auto rows =
      Analyse("rates", std::vector<Told>(3, {.result = INT64_MAX}));
  EXPECT_EQ(rows.at(std::to_string(100 * kMs))[8].number, UINT64_MAX);
}

TEST(QueueingTest, TimesByDepthAreThoseOfASweep) {
  std::mt19937_64 random(13);
  std::vector<Told> all = RandomWork(2000, random);
  all.push_back({.since_ns = all.back().since_ns, .ns = 0});
  // What changes the depth, and by how much.
  std::map<uint64_t, int64_t> changes;
  for (const Told& told : all) {
    if (told.before) continue;
    ++changes[told.since_ns];
    --changes[told.since_ns + told.ns];
  }
  std::map<std::string, uint64_t> model;
  uint64_t busy = 0;
  int64_t depth = 0;
  for (auto at = changes.begin(); std::next(at) != changes.end(); ++at) {
    depth += at->second;
    if (depth == 0) continue;
    model[std::to_string(depth)] += std::next(at)->first - at->first;
    busy += std::next(at)->first - at->first;
  }
  std::map<std::string, uint64_t> found;
  for (const auto& [key, row] : Analyse("queueing", all)) {
    found[key] = row[1].number;
    EXPECT_DOUBLE_EQ(row[2].share, static_cast<double>(row[1].number) /
                                       static_cast<double>(busy));
  }
  EXPECT_EQ(found, model);
  EXPECT_GT(found.size(), 5u);
}

TEST(SummaryTest, SharesAreOfTheWholeAlsoNearTheTop) {
  // A quarter of the time is on metadata, more than fits with three digits.
  const uint64_t quarter = UINT64_MAX / 4;
  const auto rows = Analyse("summary", {{.op = Op::read_, .ns = quarter * 3},
                                        {.op = Op::lookup_, .ns = quarter}});
  EXPECT_EQ(rows.at("operations")[1].number, 2u);
  EXPECT_DOUBLE_EQ(rows.at("on metadata")[4].share, 0.25);
}

TEST(HistogramTest, RowsReachFromTheSmallestToTheLargest) {
  HistogramRows rows;
  std::map<uint64_t, uint64_t> model;
  std::mt19937_64 random(5);
  for (int i = 0; i < 1000; ++i) {
    const uint64_t value = random() >> random() % 64;
    rows.Add(value);
    ++model[value == 0 ? 0 : uint64_t{1} << (std::bit_width(value) - 1)];
  }
  rows.Add(0);
  ++model[0];
  rows.Add(UINT64_MAX);
  ++model[uint64_t{1} << 63];
  const Table table = HistogramTable(rows, Unit::kNumber);
  uint64_t seen = 0;
  uint64_t next = 0;
  for (const Row& row : table.rows) {
    EXPECT_EQ(row[0].number, next);  // none is left out
    EXPECT_EQ(row[2].number, model[row[0].number]) << row[0].number;
    seen += row[2].number;
    EXPECT_DOUBLE_EQ(row[4].share, static_cast<double>(seen) / 1002);
    next = row[1].number + 1;
  }
  EXPECT_EQ(table.rows.back()[1].number, UINT64_MAX);
  EXPECT_EQ(table.rows.size(), 65u);
  EXPECT_EQ(seen, 1002u);
}

TEST(HistogramTest, LinearRowsEndAtTheTop) {
  const HistogramCuts cuts(1000);
  HistogramRows rows(1000);
  for (const uint64_t value : {uint64_t{999}, uint64_t{1000}, UINT64_MAX}) {
    rows.Add(value);
  }
  const Table table = HistogramTable(rows, Unit::kNumber, cuts);
  ASSERT_EQ(table.rows.size(), 4u);  // with one for all that are empty
  EXPECT_EQ(table.rows[1][1].number, 1999u);
  EXPECT_EQ(table.rows[2][2].number, 0u);
  EXPECT_EQ(table.rows[3][0].number, UINT64_MAX - UINT64_MAX % 1000);
  EXPECT_EQ(table.rows[3][1].number, UINT64_MAX);
}

}  // namespace
}  // namespace tracefs::query
