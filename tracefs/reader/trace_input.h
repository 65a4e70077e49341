// TraceInput: what a command reads of the traces that it was given: keys, time
// window, filter, following what grows, what was wrong with the traces, and the
// exit status that comes of it.
//
//   auto input = TraceInput::Open({.traces = names, .keys = keys}, sinks);
//   if (!input.ok()) …
//   (*input)->ForEach([&](format::Record& record, size_t trace) { … });
//   err.Append((*input)->Problems("tracefs-dump: "));
//   return (*input)->ExitCode();
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "filters/output/stage_decoder.h"
#include "tracefs/base/status.h"
#include "tracefs/base/time_window.h"
#include "tracefs/reader/columns.h"
#include "tracefs/reader/path_advice.h"
#include "tracefs/reader/record_filter.h"
#include "tracefs/reader/report_keeper.h"
#include "tracefs/reader/trace_set.h"

namespace tracefs::reader {

struct InputOptions {
  std::vector<std::string> traces = {};  // files, folders, "-"
  std::vector<std::string> keys = {};    // sources of keys
  std::string filter = {};               // "": everything
  bool utc = false;                      // times without a zone are UTC
  std::optional<TimeSpec> from = std::nullopt;
  std::optional<TimeSpec> to = std::nullopt;
  bool overlapping = false;  // also what was running at `from`
  // What filter and times leave out comes, too, up to `to`; asked() tells it
  // from the rest. For who follows files and processes. Without `follow`.
  bool everything = false;
  bool follow = false;       // at the end of what grows, wait for more
  bool all_or_none = false;  // Open fails if any trace cannot be opened
  unsigned threads = 0;      // for batches; 0: as many as there are processors
};

// What of the options leaves operations out: "--filter, --from and --to";
// empty: nothing does.
std::string NarrowedBy(const InputOptions& options);

// Each may be null.
struct InputSinks {
  format::ProcessRecordSink process = nullptr;
  // The same, for who has to tell processes of several traces apart.
  std::function<void(size_t trace, const ProcessRecord&)> process_of = nullptr;
  // Operations that the tracer did not keep, when a trace tells of them.
  std::function<void(const format::Report&)> loss = nullptr;
  // What was counted in the window, all or in part, or told in it.
  std::function<void(size_t trace, const format::AggregateRecord&)> aggregate =
      nullptr;
  std::function<void(size_t trace, const format::AlarmRecord&)> alarm = nullptr;
  format::StateSink state = nullptr;
  format::EmbeddedFileSink file = nullptr;  // what the traces embed
  // How many bytes of the traces were read, now and then.
  std::function<void(uint64_t)> progress = nullptr;
  // A warning about the filter, without a line end.
  std::function<void(const std::string&)> warn = nullptr;
  // A trace that cannot be opened. With it Open succeeds although there may be
  // nothing to read, and Problems() does not tell of such traces again.
  std::function<void(const Status&)> not_opened = nullptr;
  // There is nothing more to read for the moment: with `follow` alone.
  std::function<void()> idle = nullptr;
};

// What commands say once of traces that the keys given do not prove.
inline constexpr char kNotAllProven[] =
    "what was read is not all sealed or encrypted with the keys given: "
    "tracefs-verify --key says which blocks are";

// Used by one thread.
class TraceInput {
 public:
  // kInvalid, kSystem: what of the options is wrong; or, if no trace can be
  // opened, why the first cannot. Else those that cannot be are told by
  // Problems(), and the others are read.
  static Result<std::unique_ptr<TraceInput>> Open(const InputOptions& options,
                                                  InputSinks sinks);

  // The next operation, in order of time; false at the end. With `follow`, it
  // waits for it.
  bool Next(format::Record* record);
  // Whether filter and times leave the last one in.
  bool asked() const { return asked_; }
  // The number of the trace that a record is of.
  size_t NumberOf(const format::Record& record) const {
    return traces_.NumberOf(record);
  }
  // Calls `use` with each operation.
  void ForEach(const std::function<void(format::Record&, size_t trace)>& use);
  // Calls `use` with batches of these columns, in any order; texts are as they
  // are in the trace. In place of Next and ForEach.
  Status ForEachBatch(const Batch::Specs& columns,
                      const std::function<void(const Batch&)>& use);
  // Reading ends as soon as it can when this becomes true; with `follow`, at
  // what are then the ends of the traces.
  void StopAt(const std::atomic<bool>* stop) { stop_ = stop; }
  // Reads what a trace says of itself. Before all else.
  Status ReadFirst(size_t i) { return traces_.ReadFirst(i); }

  // When the traces begin and end; zeros where that is not known.
  TimeRange span();
  size_t size() const { return traces_.size(); }
  const format::TraceReader& trace(size_t i) const { return traces_.trace(i); }
  // As of TraceSet.
  format::TraceOrigin OriginOf(size_t i) { return traces_.OriginOf(i); }
  // Its name, for messages.
  std::string NameOf(size_t i) const;
  // As `--from` and `--to` came out.
  const TimeWindow& window() const { return window_; }
  // How much of what was counted is of the window; of some no part is known.
  enum class Share : uint8_t { kNone, kSome, kAll };
  Share ShareOf(const format::AggregateRecord& record) const;

  // Some block that was decoded is not proven by the keys given.
  bool unproven() const { return unproven_; }

  // What was wrong with the traces, a line each after `prefix`; what it comes
  // to as the exit status of a command.
  std::string Problems(const std::string& prefix) const;
  int ExitCode() const;
  // Why the first trace that could not be read to its end could not; with its
  // name.
  Status status() const;
  const Status& status(size_t i) const { return traces_.status(i); }
  // A sentence for each path in another filter that is none of these traces.
  std::vector<std::string> AdviceOn(std::string_view filter,
                                    std::string_view origin) const {
    return AdviceOnPaths(filter, origin, traces_);
  }
  // Whether any part of a trace was there to be read.
  bool AnythingRead() const { return traces_.AnythingRead(); }

 private:
  TraceInput(const InputOptions& options, InputSinks sinks);

  Status SetFilter();
  Status SetWindow();
  void WarnOfEmptyWindow();
  // Threads: any.
  void Judge(const BlockNotes& notes);
  TraceSinks SinksOf(size_t trace);
  bool Overlaps(const format::Record& record) const;
  // Of all traces.
  uint64_t BytesRead() const;
  void Wait();
  bool Stopped() const { return stop_ != nullptr && stop_->load(); }
  Status BatchesByTime(const Batch::Specs& columns,
                       const std::function<void(const Batch&)>& use);

  const InputOptions options_;
  const InputSinks sinks_;
  const std::shared_ptr<KeyRing> keys_ = std::make_shared<KeyRing>();
  std::optional<RecordFilter> filter_;
  bool filter_here_ = false;  // traces_ cannot
  TimeWindow window_;
  std::vector<Status> not_opened_;
  std::vector<std::unique_ptr<ReportKeeper>> reports_;  // outlive traces_
  // A block was read that no key proves, though one that could was given.
  std::atomic<bool> unproven_ = false;
  TraceSet traces_;
  std::optional<TimeRange> span_;
  const std::atomic<bool>* stop_ = nullptr;
  bool asked_ = true;       // with `everything`
  bool read_on_ = false;    // beyond headers
  uint64_t looked_at_ = 0;  // operations
  uint64_t waited_ns_ = 0;  // since the last one
};

}  // namespace tracefs::reader
