#include "tracefs/report/counted.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "tracefs/event/field.h"
#include "tracefs/event/op.h"
#include "tracefs/feed/aggregate_lines.h"
#include "tracefs/format/constants.h"
#include "tracefs/tally/sums.h"

namespace tracefs::report {
namespace {

std::string TextOfPart(const format::AggregateKeyPart& part) {
  if (part.arg_id == Info(Field::kErrno).arg_id && part.number == 0) {
    return "(no error)";
  }
  return format::AggregateKeyIsText(part.arg_id) && part.text.empty()
             ? "-"
             : AggregateKeyText(part);
}

// "" where it is not told, or is none that there is.
std::string OperationOf(const format::AggregateRecord& record) {
  for (const format::AggregateKeyPart& part : record.key) {
    if (part.arg_id != static_cast<uint16_t>(format::ArgId::kKeyOp)) continue;
    const std::optional<Op> op = OpFromNumber(part.number);
    return op ? std::string(OpName(*op)) : std::string();
  }
  return {};
}

// The time within a period is unknown: all of it has the same rate. `phase`, 0
// to 1: what does not fill every bin begins at another one for each operation.
void Spread(uint64_t count, double phase, uint64_t from, uint64_t last,
            const Bins& fine, BinRow* row) {
  const size_t first = fine.Of(from);
  const size_t bins = fine.Of(last) - first + 1;
  const uint64_t rest = count % bins;
  uint64_t sum = static_cast<uint64_t>(phase * static_cast<double>(bins));
  for (size_t i = 0; i < bins; ++i) {
    sum += rest;
    const uint64_t one_more = sum >= bins ? 1 : 0;
    sum -= one_more * bins;
    const uint64_t more = count / bins + one_more;
    if (more == 0) continue;
    uint64_t& bin = row->At(
        fine, i == 0 ? from : fine.begin_ns() + (first + i) * fine.width_ns());
    bin = tally::AddTo(bin, more);
  }
}

}  // namespace

bool CountedTable::KnowsOperations() const {
  return std::ranges::find(labels, "op") != labels.end();
}

// Parts of keys have places in the order in which they first came.
std::vector<std::string> Counted::KeyOf(const format::AggregateRecord& record,
                                        CountedTable* table) {
  std::vector<std::string> key(table->labels.size(), "-");
  for (const format::AggregateKeyPart& part : record.key) {
    const std::string label(format::AggregateKeyLabel(part.arg_id));
    const auto at = std::ranges::find(table->labels, label);
    const auto place = static_cast<size_t>(at - table->labels.begin());
    if (at == table->labels.end()) table->labels.push_back(label);
    if (place >= key.size()) key.resize(place + 1, "-");
    key[place] = TextOfPart(part);
  }
  // So that a key is the same before and after a part was first seen.
  while (!key.empty() && key.back() == "-") key.pop_back();
  return key;
}

void Counted::Take(const format::AggregateRecord& record, CountedSums* sums) {
  sums->Add(format::SumsOf(record));
  const size_t before = sums->latency.cells();
  if (buckets_ >= kMostBuckets) {
    sums->latency.Clear();
    return;
  }
  for (const format::HistogramBucketCount& one : record.latency.buckets) {
    sums->latency.AddBucket(one.bucket, one.count);
  }
  buckets_ += sums->latency.cells() - before;
}

void Counted::Add(const format::AggregateRecord& record, size_t trace,
                  TimeGrid* grid) {
  const Id id = {trace, record.tracer_id, record.aggregate};
  auto at = tables_.find(id);
  if (at == tables_.end()) {
    if (tables_.size() >= kMostTables) {
      ++tables_left_out_;
      return;
    }
    at = tables_.try_emplace(id).first;
    at->second.trace = trace;
    at->second.tracer = record.tracer_id;
    at->second.aggregate = record.aggregate;
  }
  CountedTable& table = at->second;
  table.has_errors |= record.errors.has_value();
  table.has_bytes |= record.bytes.has_value();
  table.has_latency |= record.latency.present;
  const std::vector<std::string> key = KeyOf(record, &table);

  const bool same_period = period_.table == &table &&
                           period_.total == record.total &&
                           period_.real_from_ns == record.real_from_ns &&
                           period_.real_to_ns == record.real_to_ns;
  if (!same_period) {
    EndPeriod(*grid);
    period_ = {.table = &table,
               .total = record.total,
               .real_from_ns = record.real_from_ns,
               .real_to_ns = record.real_to_ns,
               .counts = {}};
  }
  uint64_t& counted = period_.counts[OperationOf(record)];
  counted = tally::AddTo(counted, record.count);
  grid->Reach(record.real_from_ns);
  grid->Reach(std::max(record.real_from_ns + 1, record.real_to_ns) - 1);

  CountedRows& rows = record.total ? table.totals : table.periods;
  // Totals come again and again, each with all before.
  if (record.total && !same_period) {
    keys_ -= rows.by_key.size();
    rows = {};
  }
  rows.real_from_ns = rows.sum.count == 0
                          ? record.real_from_ns
                          : std::min(rows.real_from_ns, record.real_from_ns);
  rows.real_to_ns = std::max(rows.real_to_ns, record.real_to_ns);
  Take(record, &rows.sum);
  if (record.other) {
    Take(record, &rows.other);
    return;
  }
  auto row = rows.by_key.find(key);
  if (row == rows.by_key.end()) {
    if (keys_ >= kMostKeys) {
      ++rows.left_out;
      Take(record, &rows.other);
      return;
    }
    ++keys_;
    row = rows.by_key.try_emplace(key).first;
  }
  Take(record, &row->second);
}

void Counted::EndPeriod(const TimeGrid& grid) {
  CountedTable* const table = std::exchange(period_.table, nullptr);
  if (table == nullptr) return;
  uint64_t from = period_.real_from_ns;
  const uint64_t last = std::max(from + 1, period_.real_to_ns) - 1;
  if (period_.total) {
    // Told a second time, or what came since the totals before these.
    if (table->periods.sum.count != 0) return;
    if (table->told_to_ns > from && table->told_to_ns <= last) {
      from = table->told_to_ns;
    }
    table->told_to_ns = period_.real_to_ns;
    for (auto& [op, count] : period_.counts) {
      const uint64_t before = std::exchange(table->told[op], count);
      count -= std::min(before, count);
    }
  }
  // The golden ratio: phases that are as far apart as can be.
  double phase = 0;
  for (const auto& [op, count] : period_.counts) {
    Spread(count, phase, from, last, grid.fine(), &table->bins[op]);
    phase += 0.618034;
    if (phase >= 1) phase -= 1;
  }
}

std::vector<CountedTable*> Counted::Tables(const TimeGrid& grid) {
  EndPeriod(grid);
  std::vector<CountedTable*> tables;
  for (auto& [id, table] : tables_) tables.push_back(&table);
  return tables;
}

}  // namespace tracefs::report
