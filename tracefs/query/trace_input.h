// TraceInput: the operations that a question is about, read from traces as all
// commands read them: filter, keys, time range, what was lost.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "filters/input/name_table.h"
#include "tracefs/base/status.h"
#include "tracefs/base/time_window.h"
#include "tracefs/query/report_keeper.h"
#include "tracefs/query/trace_filter.h"
#include "tracefs/reader/columns.h"
#include "tracefs/reader/trace_set.h"

namespace tracefs::query {

struct InputOptions {
  std::vector<std::string> traces;  // files, folders, "-"
  std::vector<std::string> keys;    // sources of keys
  std::string filter;               // "": everything
  bool utc = false;                 // times without a zone are UTC
  std::optional<TimeSpec> from;
  std::optional<TimeSpec> to;
  bool overlapping = false;  // also what was running at `from`
  unsigned threads = 0;      // for batches; 0: as many as there are processors
};

struct InputSinks {
  format::ProcessRecordSink process = nullptr;
  // The same, for who has to tell processes of several traces apart.
  std::function<void(size_t trace, const ProcessRecord&)> process_of = nullptr;
  // Operations that the tracer did not keep, when a trace tells of them.
  std::function<void(const format::Report&)> loss = nullptr;
  std::function<void(size_t trace, const format::AggregateRecord&)> aggregate =
      nullptr;
  std::function<void(size_t trace, const format::AlarmRecord&)> alarm = nullptr;
  // How many bytes of the traces were read, now and then.
  std::function<void(uint64_t)> progress = nullptr;
  // A warning about the filter, without a line end.
  std::function<void(const std::string&)> warn = nullptr;
};

// Used by one thread.
class TraceInput {
 public:
  // kInvalid, kSystem: what of the options is wrong; or, if no trace can be
  // opened, why the first cannot. Else those that cannot be are told by
  // Problems(), and the others are read.
  static Result<std::unique_ptr<TraceInput>> Open(const InputOptions& options,
                                                  InputSinks sinks);

  // Calls `use` with each operation, in order of time. One of the two, once.
  void ForEach(const std::function<void(format::Record&, size_t trace)>& use);
  // Calls `use` with batches of these columns, in any order; texts are as they
  // are in the trace.
  Status ForEachBatch(const reader::Batch::Specs& columns,
                      const std::function<void(const reader::Batch&)>& use);
  // Reading ends as soon as it can when this becomes true.
  void StopAt(const std::atomic<bool>* stop) { stop_ = stop; }

  // When the traces begin and end; zeros where that is not known.
  TimeRange span();
  size_t size() const { return traces_.size(); }
  const format::TraceReader& trace(size_t i) const { return traces_.trace(i); }
  // As `--from` and `--to` came out.
  const TimeWindow& window() const { return window_; }

  // What was wrong with the traces, a line each after `prefix`; what it comes
  // to as the exit status of a command.
  std::string Problems(const std::string& prefix) const;
  // Whether any part of a trace was there to be read.
  bool AnythingRead() const { return traces_.AnythingRead(); }
  int ExitCode() const;

 private:
  TraceInput(const InputOptions& options, InputSinks sinks);

  Status SetFilter();
  Status SetWindow();
  reader::TraceSinks SinksOf(size_t trace);
  bool Overlaps(const format::Record& record) const;
  // Of all traces.
  uint64_t BytesRead() const;
  bool Stopped() const { return stop_ != nullptr && stop_->load(); }
  Status BatchesByTime(const reader::Batch::Specs& columns,
                       const std::function<void(const reader::Batch&)>& use);

  const InputOptions options_;
  const InputSinks sinks_;
  const std::shared_ptr<KeyRing> keys_ = std::make_shared<KeyRing>();
  NameTable names_;                    // outlives filter_
  std::optional<TraceFilter> filter_;  // where it has words of traces only
  std::shared_ptr<const reader::EventFilter> compiled_;  // else
  bool asks_for_ancestors_ = false;
  TimeWindow window_;
  std::vector<Status> not_opened_;
  std::vector<std::unique_ptr<ReportKeeper>> reports_;  // outlive traces_
  reader::TraceSet traces_;
  std::optional<TimeRange> span_;
  const std::atomic<bool>* stop_ = nullptr;
};

}  // namespace tracefs::query
