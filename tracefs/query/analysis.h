// Analysis: looks at the operations of traces in order of time, and answers
// with tables. One for each kind of question; analyses.h has the table of them.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/event/process_record.h"
#include "tracefs/format/record.h"
#include "tracefs/query/table.h"
#include "tracefs/tally/transfer.h"

namespace tracefs::query {

// Used by one thread. Memory is bounded whatever comes: what there was no room
// for is counted and told in the notes of the tables.
class Analysis {
 public:
  virtual ~Analysis() = default;
  // An operation that is over; in order of time.
  virtual void Take(const format::Record& record, size_t trace) = 0;
  // Whether it has to see what filters and times leave out as well: files come
  // and go by operations that are not asked about.
  virtual bool follows_files() const { return false; }
  // Such an operation, in its place among the others; it counts for nothing.
  virtual void Pass(const format::Record& /*record*/, size_t /*trace*/) {}
  // What happened to a process, in its place among the operations.
  virtual void TakeProcess(const ProcessRecord& /*record*/) {}
  // The same, for who has to know of which trace it is.
  virtual void TakeProcessOf(const format::TraceContext& /*trace*/,
                             const ProcessRecord& record) {
    TakeProcess(record);
  }
  // The traces, when all of them have been read; before Finish.
  virtual void TakeTraces(
      std::span<const format::TraceContext* const> /*traces*/) {}
  // Once, after the last one.
  virtual std::vector<Table> Finish() = 0;
  // After that: why there is no answer, where what was asked about is not
  // there.
  virtual Status Verdict() const { return {}; }
};

// Whether an operation is one that ran and has ended, and not what was recorded
// before it (STR_PRE_OP).
inline bool HasRun(const format::Record& record) {
  return !record.event.before;
}
using tally::Failed;
// Whose it is; zeros where nobody has looked.
inline format::TraceOrigin OriginOf(const format::Record& record) {
  return record.trace == nullptr ? format::TraceOrigin{} : record.trace->origin;
}
// Whether what is opened loses what was in it.
bool TruncatesByOpening(const Event& event);

}  // namespace tracefs::query
