// Counted: what aggregate drivers counted instead of recording it: a table for
// each of them, and when it was.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tracefs/format/aggregate.h"
#include "tracefs/report/time_grid.h"
#include "tracefs/tally/sums.h"

namespace tracefs::report {

// What is known of the operations of one key.
struct CountedSums : tally::TimedSums {
  tally::SparseHistogram latency;  // empty where room ran out
};

// Of one driver, either all its periods or its last totals.
struct CountedRows {
  std::map<std::vector<std::string>, CountedSums>
      by_key;             // by parts of the key
  CountedSums other;      // of no key that is kept apart
  CountedSums sum;        // with `other`
  uint64_t left_out = 0;  // times that a key found no room
  uint64_t real_from_ns = 0;
  uint64_t real_to_ns = 0;
};

struct CountedTable {
  size_t trace = 0;
  uint32_t tracer = 0;
  uint32_t aggregate = 0;
  std::vector<std::string> labels;  // of the parts of keys: "op", "comm"
  bool has_errors = false;
  bool has_bytes = false;
  bool has_latency = false;
  CountedRows periods;
  CountedRows totals;
  // Fine bins by operation: "" where it is no part of the key, or of `other`.
  std::map<std::string, BinRow> bins;
  // What bins have of totals, which have all that was told before in them.
  std::map<std::string, uint64_t> told;
  uint64_t told_to_ns = 0;

  const CountedRows& rows() const {
    return totals.sum.count >= periods.sum.count ? totals : periods;
  }
  bool KnowsOperations() const;
};

// Used by one thread.
class Counted {
 public:
  // Of all tables together.
  static constexpr size_t kMostKeys = 4096;
  static constexpr size_t kMostBuckets = 1 << 20;
  static constexpr size_t kMostTables = 256;

  // Brings bins up to date with `grid` as far as periods are complete.
  void Add(const format::AggregateRecord& record, size_t trace, TimeGrid* grid);
  // One that is left out, because the time that is asked about cuts it.
  void Cut(const format::AggregateRecord& record) {
    (record.total ? total_cut_ : period_cut_) = true;
  }
  // Whether anything is missing for that: the periods tell what a total does.
  bool cut() const { return period_cut_ || (total_cut_ && tables_.empty()); }
  // By number of the trace, then tracer, then driver.
  std::vector<CountedTable*> Tables(const TimeGrid& grid);
  uint64_t tables_left_out() const { return tables_left_out_; }

 private:
  struct Id {
    size_t trace;
    uint32_t tracer;
    uint32_t aggregate;
    auto operator<=>(const Id&) const = default;
  };
  // Records of one period, which come one after the other.
  struct Period {
    CountedTable* table = nullptr;
    bool total = false;
    uint64_t real_from_ns = 0;
    uint64_t real_to_ns = 0;
    std::map<std::string, uint64_t> counts;  // by operation
  };

  std::vector<std::string> KeyOf(const format::AggregateRecord& record,
                                 CountedTable* table);
  void Take(const format::AggregateRecord& record, CountedSums* sums);
  void EndPeriod(const TimeGrid& grid);

  std::map<Id, CountedTable> tables_;
  Period period_;
  size_t keys_ = 0;
  size_t buckets_ = 0;
  uint64_t tables_left_out_ = 0;
  bool total_cut_ = false;
  bool period_cut_ = false;
};

}  // namespace tracefs::report
