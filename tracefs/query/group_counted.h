// What tracers counted by themselves, as the answer to a question: which of
// their aggregate drivers have what is asked for.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <tuple>

#include "tracefs/base/status.h"
#include "tracefs/format/aggregate.h"
#include "tracefs/format/trace_header.h"
#include "tracefs/query/grouping.h"

namespace tracefs::query {

// Whether a tracer's aggregate drivers count a copy under both of its files,
// where their keys are about files.
bool CopiesCountForBothFiles(const format::TraceHeader& header);
// Whether some part of the record's key is about files.
bool IsAboutFiles(const format::AggregateRecord& record);

// What a record adds. A copy that was counted under both of its files tells
// each byte twice: by file each belongs to one of them, else half of
// what is told is what was moved.
Tally TallyOf(const format::AggregateRecord& record, bool both_files,
              bool by_file);

// Each driver of a tracer counts all of its operations: of each tracer, one
// driver is to answer. Used by one thread: first all records, then Choose, then
// the same records again.
class CountedChoice {
 public:
  void Take(size_t trace, const format::AggregateRecord& record);
  // What the header of a trace says of its drivers; after its records.
  void TakeHeader(size_t trace, const format::TraceHeader& header);
  bool empty() const { return drivers_.empty(); }
  // kInvalid if no driver of some tracer has the keys: what there is instead.
  Status Choose(const GroupSpec& spec);
  // Whether a record is part of the answer.
  bool Wants(size_t trace, const format::AggregateRecord& record) const;
  // Whether a copy was counted under both of its files, as keys are about
  // files, and not as in traces of older versions under its source alone.
  bool CountsBothFiles(size_t trace,
                       const format::AggregateRecord& record) const;

 private:
  // Trace, tracer, and which one of its aggregate drivers.
  using Id = std::tuple<size_t, uint32_t, uint32_t>;
  struct Driver {
    std::set<uint16_t> keys;  // arguments, of all its records
    uint32_t depth = 0;       // of directories; 0: whole ones, or not known
    bool has_total = false;
    uint64_t other = 0;  // operations that have no key of their own
    bool chosen = false;

    bool Has(const GroupKey& key) const;
  };
  // More are hostile.
  static constexpr size_t kMost = 1000;

  std::map<Id, Driver> drivers_;
  std::set<size_t> both_files_;  // traces
  bool too_many_ = false;
};

}  // namespace tracefs::query
