#include "tracefs/tools/dump/dump.h"

#include <errno.h>
#include <time.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "filters/output/key_ring.h"
#include "tracefs/command/wait_for_writers.h"
#include "tracefs/crypto/key_source.h"
#include "tracefs/export/escape.h"
#include "tracefs/export/table.h"
#include "tracefs/reader/trace_set.h"
#include "tracefs/tools/dump/aggregate_queue.h"
#include "tracefs/tools/dump/extract.h"
#include "tracefs/tools/dump/line_queue.h"
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

constexpr char kCommand[] = "tracefs-dump: ";

void Sleep(uint64_t ns) {
  // A signal may end it early, which is as well.
  const timespec time = {.tv_sec = 0, .tv_nsec = static_cast<long>(ns)};
  ::nanosleep(&time, nullptr);
}

class Dumper {
 public:
  Dumper(const DumpOptions& options, OutputBuffer& out, OutputBuffer& err,
         const std::atomic<bool>& stop)
      : options_(options),
        out_(out),
        err_(err),
        stop_(stop),
        exporter_(
            FindExportFormat(options.format)
                ->make(out, {.time = options.time, .date = options.date})) {}

  int Run() {
    if (!options_.filter.empty()) {
      auto filter = reader::EventFilter::Compile(options_.filter, "--filter");
      if (!filter.ok()) return Complain(filter.status());
      for (const std::string& warning : (*filter)->warnings()) {
        err_.Append(kCommand + warning + '\n');
      }
      traces_.SetFilter(*std::move(filter));
    }
    const Status keys = AddKeyArguments(options_.keys, "--key", keys_.get());
    if (!keys.ok()) return Complain(keys);
    if (options_.wait && !Wait()) return exit_status_;
    traces_.AddNamed(options_.traces, [this](const Status& s) { Fail(s); });
    if (!options_.extract.empty()) return Extract();
    if (options_.header) PrintHeaders();
    if (options_.stats) {
      CountOperations();
    } else if (!options_.header) {
      ListOperations();
    }
    const Status written = out_.Flush();
    if (!written.ok()) {
      // A reader that has seen enough (head, less) is not an error.
      if (written.error() == EPIPE) return 0;
      return Complain(written);
    }
    return Finish();
  }

 private:
  void Fail(const Status& status) {
    exit_status_ = std::max(exit_status_, Complain(status));
  }

  // False if it was interrupted.
  bool Wait() {
    const auto tell = [this](const std::string& text) {
      err_.Append(kCommand + text + "\n");
      static_cast<void>(err_.Flush());
    };
    return WaitForWriters(options_.traces, tell, &stop_);
  }

  reader::TraceSinks SinksOf(size_t trace) {
    reader::TraceSinks sinks;
    if (options_.stats && options_.filter.empty()) {
      sinks.aggregate = [this, trace](const format::AggregateRecord& record) {
        stats_.AddCounts(trace, record);
      };
    } else if (options_.filter.empty()) {
      sinks.aggregate = [this](const format::AggregateRecord& record) {
        aggregates_.Add(record);
      };
      sinks.alarm = [this](const format::AlarmRecord& alarm) {
        alarms_.Add(alarm.operation->real_ns, exporter_->AlarmLine(alarm));
      };
      sinks.process = [this](const ProcessRecord& process) {
        WriteOthers(process.real_ns);
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
  int Extract() {
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
      out_.Append(text);
    }
    if (Status s = out_.Flush(); !s.ok()) return Complain(s);
    for (size_t i = 0; i < traces_.size(); ++i) {
      if (!traces_.status(i).ok()) {
        Fail(traces_.status(i).Prefixed(
            TerminalWord(traces_.trace(i).context().name)));
      }
    }
    return exit_status_;
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
    Record record;
    while (out_.status().ok()) {
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
      use(record);
    }
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
        },
        [&] { WriteOthers(UINT64_MAX); });
    WriteOthers(UINT64_MAX);
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
    const bool read_on = options_.stats || !options_.header;
    for (size_t i = 0; i < traces_.size(); ++i) {
      const TraceReader& trace = traces_.trace(i);
      const std::string name = TerminalWord(trace.context().name);
      err_.Append(reports_[i]->Text(kCommand + name + ": ", trace.stats()));
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
    err_.Append(kCommand + status.message() + "\n");
    (void)err_.Flush();
    return ExitStatus(status);
  }

  const DumpOptions& options_;
  OutputBuffer& out_;
  OutputBuffer& err_;
  const std::atomic<bool>& stop_;
  const std::unique_ptr<Exporter> exporter_;
  const std::shared_ptr<KeyRing> keys_ = std::make_shared<KeyRing>();
  OpStats stats_;                                       // outlives traces_
  AggregateQueue aggregates_;                           // outlives traces_
  LineQueue alarms_;                                    // outlives traces_
  std::vector<std::unique_ptr<ReportKeeper>> reports_;  // outlive traces_
  reader::TraceSet traces_{{.follow = options_.follow,
                            .keys = keys_,
                            .sinks = [this](size_t i) { return SinksOf(i); }}};
  int exit_status_ = 0;
};

}  // namespace

int Dump(const DumpOptions& options, OutputBuffer& out, OutputBuffer& err,
         const std::atomic<bool>& stop) {
  return Dumper(options, out, err, stop).Run();
}

}  // namespace tracefs
