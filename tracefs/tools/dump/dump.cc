#include "tracefs/tools/dump/dump.h"

#include <errno.h>
#include <time.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "filters/input/name_service.h"
#include "filters/input/name_table.h"
#include "filters/output/key_ring.h"
#include "tracefs/base/time_window.h"
#include "tracefs/command/caret.h"
#include "tracefs/command/progress.h"
#include "tracefs/command/wait_for_writers.h"
#include "tracefs/crypto/key_source.h"
#include "tracefs/export/table.h"
#include "tracefs/query/group_counted.h"
#include "tracefs/query/report_keeper.h"
#include "tracefs/query/trace_filter.h"
#include "tracefs/reader/opaque_fields.h"
#include "tracefs/reader/path_advice.h"
#include "tracefs/reader/trace_set.h"
#include "tracefs/text/escape.h"
#include "tracefs/tools/dump/aggregate_queue.h"
#include "tracefs/tools/dump/browse.h"
#include "tracefs/tools/dump/export_output.h"
#include "tracefs/tools/dump/extract.h"
#include "tracefs/tools/dump/line_queue.h"
#include "tracefs/tools/dump/main.h"
#include "tracefs/tools/dump/query.h"
#include "tracefs/tools/dump/replayable.h"
#include "tracefs/tools/dump/trace_summary.h"

namespace tracefs {
namespace {

using format::ReadStep;
using format::Record;
using format::TraceReader;

// How long --follow sleeps at the end of its input, and after how long it shows
// what it has although an operation that began earlier may still come.
constexpr uint64_t kSleepNs = 50'000'000;
constexpr uint64_t kPatienceNs = 1'000'000'000;

// How many operations are read before it is looked how far it is.
constexpr uint64_t kTellAfter = 4096;

void Sleep(uint64_t ns) {
  // A signal may end it early, which is as well.
  const timespec time = {.tv_sec = 0, .tv_nsec = static_cast<long>(ns)};
  ::nanosleep(&time, nullptr);
}

class Dumper {
 public:
  Dumper(const DumpOptions& options, ExportOutput& output, OutputBuffer& err,
         const std::atomic<bool>& stop)
      : options_(options),
        output_(output),
        out_(output.buffer()),
        err_(err),
        stop_(stop),
        exporter_(MakeExporter()) {}

  int Run() {
    if (Status s = SetFilter(); !s.ok()) return Complain(s);
    const Status keys = AddKeyArguments(options_.keys, "--key", keys_.get());
    if (!keys.ok()) return Complain(keys);
    if (options_.wait && !Wait()) return exit_status_;
    if (options_.query) return PlaceQuery();
    traces_.AddNamed(options_.traces, [this](const Status& s) { Fail(s); });
    if (!options_.extract.empty()) return ExtractAll();
    if (Status s = SetWindow(); !s.ok()) return Complain(s);
    if (options_.header) PrintHeaders();
    if (options_.stats) {
      CountOperations();
    } else if (!options_.header) {
      ListOperations();
    }
    if (const Status written = EndOutput(); !written.ok()) {
      // A reader that has seen enough (head, less) is not an error.
      if (written.error() == EPIPE && !output_.to_file()) return 0;
      return Complain(written);
    }
    return Place(Finish(), traces_.AnythingRead());
  }

 private:
  std::unique_ptr<Exporter> MakeExporter() const {
    ExportOptions exported = options_.exported;
    exported.path = output_.path();
    return FindExportFormat(options_.format)->make(out_, exported);
  }

  int PlaceQuery() {
    const auto [status, anything] = PrintQuery(options_, out_, err_, stop_);
    if (const Status written = EndOutput(); !written.ok()) {
      if (written.error() == EPIPE && !output_.to_file()) return status;
      return Complain(written);
    }
    (void)err_.Flush();  // nobody to tell
    return Place(status, anything);
  }

  // Puts what was written where --output says. What could be read of a damaged
  // trace is worth having, nothing is not. Returns the exit status.
  int Place(int status, bool anything) {
    if (!output_.to_file()) return status;
    if (status > 1 || (status == 1 && !anything)) {
      (void)Complain(Status::Invalid(options_.output + " is as it was"));
      return status;
    }
    const Status placed = output_.Commit();
    return placed.ok() ? status : Complain(placed);
  }

  // What --output was to replace is as it was unless all went well.
  Status EndOutput() {
    if (Status s = output_.Flush(); !s.ok()) return s;
    if (Status s = exporter_->status(); !s.ok()) return s;
    if (output_.to_file() && !options_.follow && stop_.load()) {
      return Status::SystemSaid(
          EINTR, "interrupted; " + options_.output + " is as it was");
    }
    return {};
  }

  Status SetFilter() {
    if (options_.filter.empty()) return {};
    if (TraceFilter::IsNeeded(options_.filter)) {
      auto filter =
          TraceFilter::Compile(options_.filter, SystemNameService(), names_,
                               options_.time == TimeStyle::kUtc);
      if (!filter.ok()) return filter.status();
      filter_.emplace(*std::move(filter));
      return {};
    }
    auto filter = reader::EventFilter::Compile(options_.filter, "--filter");
    if (!filter.ok()) return filter.status();
    for (const std::string& warning : (*filter)->warnings()) {
      err_.Append(kDumpSays + warning + '\n');
    }
    traces_.SetFilter(*std::move(filter));
    return {};
  }

  // What --from and --to mean for these traces.
  Status SetWindow() {
    format::TraceReader::Span span;
    bool needs_begin = false;
    bool needs_end = false;
    for (const auto& spec : {options_.from, options_.to}) {
      needs_begin |= spec && spec->NeedsBegin();
      needs_end |= spec && spec->NeedsEnd();
    }
    if (needs_end && options_.follow) {
      return Status::Invalid(
          "--follow: where the trace ends is not known yet; --from and --to "
          "take dates, clock times and +TIME");
    }
    if (needs_begin) {
      auto found = traces_.TimeSpan();
      if (!found.ok()) return found.status();
      span = *found;
      if (span.first_ns == 0) {
        return Status::Invalid(
            "when the trace begins and ends cannot be told before it is read: "
            "--from and --to take dates and @NANOSECONDS of it");
      }
    }
    const TimeRange times = {span.first_ns, span.last_ns};
    const bool utc = options_.time == TimeStyle::kUtc;
    const auto window = ResolveWindow(options_.from, options_.to, times, utc);
    if (!window.ok()) return window.status();
    window_ = *window;
    reader::TimeRange range = {window_.from_ns, window_.to_ns};
    // What runs at the begin may have begun long before.
    if (options_.overlapping) range.from_ns = 0;
    traces_.SetRange(range);
    return {};
  }

  // Of --overlapping: whether it was running when the window begins.
  bool Overlaps(const Record& record) const {
    if (record.time_resolution_ns == 0) return false;
    if (window_.Has(record.real_ns)) return true;
    return window_.from_ns < window_.to_ns &&
           record.event.Has(Field::kLatency) &&
           record.event.Get(Field::kLatency) > window_.from_ns - record.real_ns;
  }

  void Fail(const Status& status) {
    exit_status_ = std::max(exit_status_, Complain(status));
  }

  // False if it was interrupted.
  bool Wait() {
    const auto tell = [this](const std::string& text) {
      err_.Append(kDumpSays + text + "\n");
      static_cast<void>(err_.Flush());
    };
    return WaitForWriters(options_.traces, tell, &stop_);
  }

  reader::TraceSinks SinksOf(size_t trace) {
    reader::TraceSinks sinks;
    const bool all = options_.filter.empty();
    if (options_.stats && all && !options_.from && !options_.to) {
      sinks.aggregate = [this, trace](const format::AggregateRecord& record) {
        stats_.AddCounts(trace, record,
                         query::CopiesCountForBothFiles(
                             traces_.trace(trace).description().header));
      };
    } else if (!options_.stats && all) {
      sinks.aggregate = [this](const format::AggregateRecord& record) {
        if (window_.Has(record.real_to_ns)) aggregates_.Add(record);
      };
      sinks.alarm = [this](const format::AlarmRecord& alarm) {
        const uint64_t at = alarm.operation->real_ns;
        if (window_.Has(at)) alarms_.Add(at, exporter_->AlarmLine(alarm));
      };
      sinks.process = [this](const ProcessRecord& process) {
        if (!window_.Has(process.real_ns)) return;
        WriteOthers(process.real_ns);
        exporter_->WriteProcess(process);
      };
    }
    if (!options_.stats && FindExportFormat(options_.format)->processes) {
      sinks.process = [this](const ProcessRecord& process) {
        exporter_->WriteProcess(process);
      };
    }
    reports_.push_back(std::make_unique<ReportKeeper>());
    sinks.report = [keeper = reports_.back().get()](const format::Report& r) {
      keeper->Add(r);
    };
    return sinks;
  }

  // Prints what the headers embed; exit status 1 where one has nothing of it.
  int ExtractAll() {
    bool anything = false;
    for (size_t i = 0; i < traces_.size(); ++i) {
      const Status read = traces_.ReadFirst(i);
      if (!read.ok()) continue;  // told below
      const TraceReader& trace = traces_.trace(i);
      const std::string text =
          ExtractFrom(trace.description().header, options_.extract);
      if (text.empty()) {
        Fail(Status::Corrupt(TerminalWord(trace.context().name) +
                             ": the header has no " + options_.extract +
                             ": --header shows what it has"));
      }
      anything |= !text.empty();
      out_.Append(text);
    }
    if (Status s = out_.Flush(); !s.ok()) return Complain(s);
    for (size_t i = 0; i < traces_.size(); ++i) {
      if (!traces_.status(i).ok()) {
        Fail(traces_.status(i).Prefixed(
            TerminalWord(traces_.trace(i).context().name)));
      }
    }
    return Place(exit_status_, anything);
  }

  void PrintHeaders() {
    for (size_t i = 0; i < traces_.size(); ++i) {
      // The first block has the description; reading goes on from there.
      const Status status = traces_.ReadFirst(i);
      if (!status.ok()) continue;
      TraceReader& trace = traces_.trace(i);
      out_.Append(options_.format == "jsonl"
                      ? DescribeTraceAsJson(trace)
                      : DescribeTrace(trace, options_.time));
    }
  }

  // Calls `use` with each operation the filter keeps, and `idle` when there is
  // nothing more for the moment.
  template <typename Use, typename Idle>
  void ForEach(Use use, Idle idle) {
    uint64_t waited_ns = 0;
    uint64_t count = 0;
    Record record;
    std::optional<Progress> progress;
    if (output_.to_file() && !options_.follow)
      progress.emplace(options_.traces);
    while (out_.status().ok() && exporter_->status().ok()) {
      if (options_.limit != 0 && listed_ == options_.limit) return;
      if (++count % kTellAfter == 0 && output_.to_file()) {
        if (progress) progress->Tell(BytesRead());
        if (!options_.follow && stop_.load()) return;
      }
      if (options_.follow && stop_.load()) traces_.Stop();
      const bool hurry = waited_ns >= kPatienceNs;
      const ReadStep step = traces_.Next(&record, hurry);
      if (step == ReadStep::kEnd) return;
      if (step == ReadStep::kWait) {
        idle();
        (void)out_.Flush();  // looked at above
        Sleep(kSleepNs);
        waited_ns += kSleepNs;
        continue;
      }
      if (!hurry) waited_ns = 0;
      if (options_.overlapping && !Overlaps(record)) continue;
      if (filter_ && !filter_->Keep(record)) continue;
      use(record);
    }
  }

  uint64_t BytesRead() const {
    uint64_t bytes = 0;
    for (size_t i = 0; i < traces_.size(); ++i) {
      bytes += traces_.trace(i).stats().bytes;
    }
    return bytes;
  }

  // What lies before that time, and is listed apart from operations.
  void WriteOthers(uint64_t until_ns) {
    aggregates_.TakeUntil(until_ns,
                          [&](const format::AggregateRecord& aggregate) {
                            exporter_->WriteAggregate(aggregate);
                          });
    // An alarm stands behind the operation that raised it.
    alarms_.TakeUntil(until_ns,
                      [&](const std::string& line) { out_.Append(line); });
  }

  void ListOperations() {
    ForEach(
        [&](const Record& record) {
          if (record.time_resolution_ns != 0) WriteOthers(record.real_ns);
          exporter_->Write(record);
          ++listed_;
        },
        [&] { WriteOthers(UINT64_MAX); });
    WriteOthers(UINT64_MAX);
    ExportSummary summary = {.traces = {}, .filter = options_.filter};
    for (size_t i = 0; i < traces_.size(); ++i) {
      summary.traces.push_back(&traces_.trace(i).context());
    }
    exporter_->Summarize(summary);
    exporter_->Finish();
  }

  void CountOperations() {
    ForEach([this](const Record& record) { stats_.Add(record); }, [] {});
    std::vector<const format::ReadStats*> traces;
    for (size_t i = 0; i < traces_.size(); ++i) {
      traces.push_back(&traces_.trace(i).stats());
    }
    out_.Append(options_.format == "jsonl" ? stats_.JsonLines(traces)
                                           : stats_.Table(traces));
  }

  // Says what is wrong with the traces.
  int Finish() {
    const LeftOut left_out = exporter_->LeftOutSoFar();
    if (const std::string text = left_out.Text(); !text.empty()) {
      err_.Append(kDumpSays + text + " left out of --format " +
                  options_.format + ", which has no place for them\n");
    }
    for (const std::string& advice :
         reader::AdviceOnPaths(options_.filter, "--filter", traces_)) {
      err_.Append(kDumpSays + advice + "\n");
    }
    const bool read_on = options_.stats || !options_.header;
    for (size_t i = 0; i < traces_.size(); ++i) {
      const TraceReader& trace = traces_.trace(i);
      const std::string name = TerminalWord(trace.context().name);
      const std::string opaque = reader::OpaqueAmong(
          reader::FieldsInFilter(options_.filter), trace.context());
      if (!opaque.empty()) {
        err_.Append(kDumpSays + name + ": --filter: " + opaque + "\n");
      }
      err_.Append(reports_[i]->Text(kDumpSays + name + ": ", trace.stats()));
      const Status& status = traces_.status(i);
      if (!status.ok()) {
        exit_status_ = std::max(exit_status_, Complain(status.Prefixed(name)));
      } else if (read_on ? trace.stats().Bad() : trace.stats().no_header) {
        exit_status_ = std::max(exit_status_, 1);
      }
    }
    (void)err_.Flush();  // nobody to tell
    return exit_status_;
  }

  int Complain(const Status& status) {
    err_.Append(kDumpSays + status.message() + "\n" +
                CaretOnTerminal(status.message(), options_.filter));
    (void)err_.Flush();
    return ExitStatus(status);
  }

  const DumpOptions& options_;
  ExportOutput& output_;
  OutputBuffer& out_;
  OutputBuffer& err_;
  const std::atomic<bool>& stop_;
  const std::unique_ptr<Exporter> exporter_;
  const std::shared_ptr<KeyRing> keys_ = std::make_shared<KeyRing>();
  NameTable names_;                    // outlives filter_
  std::optional<TraceFilter> filter_;  // where it has words of traces only
  TimeWindow window_;
  OpStats stats_;                                       // outlives traces_
  AggregateQueue aggregates_;                           // outlives traces_
  LineQueue alarms_;                                    // outlives traces_
  std::vector<std::unique_ptr<ReportKeeper>> reports_;  // outlive traces_
  reader::TraceSet traces_{{.follow = options_.follow,
                            .keys = keys_,
                            .sinks = [this](size_t i) { return SinksOf(i); }}};
  uint64_t listed_ = 0;  // operations
  int exit_status_ = 0;
};

}  // namespace

int Dump(const DumpOptions& options, OutputBuffer& out, OutputBuffer& err,
         const std::atomic<bool>& stop) {
  if (options.browse) {
    if (options.wait) {
      const auto tell = [&err](const std::string& text) {
        err.Append(kDumpSays + text + "\n");
        static_cast<void>(err.Flush());
      };
      if (!WaitForWriters(options.traces, tell, &stop)) return 0;
    }
    return Browse(options, out, err, stop);
  }
  if (options.check_replayable) return CheckReplayable(options, out, err);
  auto output = ExportOutput::Open(options, out);
  if (!output.ok()) {
    err.Append(kDumpSays + output.status().message() + "\n");
    (void)err.Flush();
    return ExitStatus(output.status());
  }
  return Dumper(options, **output, err, stop).Run();
}

}  // namespace tracefs
