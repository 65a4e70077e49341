#include "tracefs/tools/dump/dump.h"

#include <errno.h>
#include <sys/stat.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tracefs/command/caret.h"
#include "tracefs/command/progress.h"
#include "tracefs/command/wait_for_writers.h"
#include "tracefs/export/table.h"
#include "tracefs/query/group_counted.h"
#include "tracefs/query/group_traces.h"
#include "tracefs/reader/trace_input.h"
#include "tracefs/tools/dump/aggregate_queue.h"
#include "tracefs/tools/dump/browse.h"
#include "tracefs/tools/dump/embedded_files.h"
#include "tracefs/tools/dump/export_output.h"
#include "tracefs/tools/dump/extract.h"
#include "tracefs/tools/dump/line_queue.h"
#include "tracefs/tools/dump/main.h"
#include "tracefs/tools/dump/query.h"
#include "tracefs/tools/dump/replayable.h"
#include "tracefs/tools/dump/trace_summary.h"

namespace tracefs {
namespace {

using format::Record;
using format::TraceReader;

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
    if (options_.query) return PlaceQuery();
    if (Status s = Open(); !s.ok()) return Complain(s);
    if (options_.extract == kExtractFiles) return ExtractFiles();
    if (!options_.extract.empty()) return ExtractAll();
    if (options_.header) PrintHeaders();
    if (options_.stats) {
      if (Status s = CountOperations(); !s.ok()) return Complain(s);
    } else if (!options_.header) {
      ListOperations();
    }
    progress_.reset();
    if (const Status written = EndOutput(); !written.ok()) {
      // A reader that has seen enough (head, less) is not an error.
      if (written.error() == EPIPE && !output_.to_file()) return 0;
      return Complain(written);
    }
    return Place(Finish(), input_->AnythingRead());
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

  Status Open() {
    if (options_.extract == kExtractFiles) {
      files_.emplace(output_.to_file() ? output_.path() : std::string());
    }
    if (output_.to_file() && !options_.follow) {
      progress_.emplace(options_.traces);
    }
    auto input = reader::TraceInput::Open(InputOf(options_), Sinks());
    if (!input.ok()) return input.status();
    input_ = *std::move(input);
    input_->StopAt(&stop_);
    return {};
  }

  reader::InputSinks Sinks() {
    reader::InputSinks sinks;
    sinks.warn = [this](const std::string& text) {
      err_.Append(kDumpSays + text + "\n");
    };
    sinks.not_opened = [this](const Status& status) { (void)Complain(status); };
    if (progress_ && progress_->shown()) {
      sinks.progress = [this](uint64_t bytes) { progress_->Tell(bytes); };
    }
    if (files_) {
      sinks.file = [this](const format::EmbeddedFile& file) {
        files_->Take(file);
      };
      return sinks;
    }
    const bool all = options_.filter.empty();
    if (options_.stats) {
      // With it, blocks are decoded one after another: a file is read again if
      // anything was counted.
      if (WantsCounts() && !CanReadAgain()) sinks.aggregate = CountsSink();
      return sinks;
    }
    sinks.idle = [this] {
      WriteOthers(UINT64_MAX);
      (void)out_.Flush();  // looked at when there is more
    };
    if (all) {
      sinks.aggregate = [this](size_t, const format::AggregateRecord& record) {
        // Where a listing has it is when it was told.
        if (input_->window().Has(record.real_to_ns)) aggregates_.Add(record);
      };
      sinks.alarm = [this](size_t, const format::AlarmRecord& alarm) {
        alarms_.Add(alarm.operation->real_ns, exporter_->AlarmLine(alarm));
      };
      sinks.process = [this](const ProcessRecord& process) {
        if (!input_->window().Has(process.real_ns)) return;
        WriteOthers(process.real_ns);
        exporter_->WriteProcess(process);
      };
    }
    if (FindExportFormat(options_.format)->Has(kFollowsProcesses)) {
      sinks.process = [this](const ProcessRecord& process) {
        exporter_->WriteProcess(process);
      };
    }
    return sinks;
  }

  // Lists or gives back what a trace embeds.
  int ExtractFiles() {
    if (input_->size() != 1) {
      return Complain(Status::Invalid("--extract files takes one trace"));
    }
    if (Status s = files_->Begin(); !s.ok()) return Complain(s);
    input_->ForEach([](const Record&, size_t) {});
    files_->Finish();
    progress_.reset();
    if (!output_.to_file()) out_.Append(files_->listing());
    if (Status s = out_.Flush(); !s.ok()) return Complain(s);
    int status = 0;
    for (const std::string& problem : files_->problems()) {
      status = Complain(Status::Corrupt(problem));
    }
    if (files_->listing().empty()) {
      status = Complain(Status::Corrupt(
          input_->NameOf(0) +
          ": it embeds no files; tracefs-run --embed keeps them"));
    }
    return Place(std::max(status, Finish()), files_->files() != 0);
  }

  // Prints what the headers embed; exit status 1 where one has nothing of it.
  int ExtractAll() {
    bool anything = false;
    int status = 0;
    for (size_t i = 0; i < input_->size(); ++i) {
      if (!input_->ReadFirst(i).ok()) continue;  // told below
      const std::string text =
          ExtractFrom(input_->trace(i).description().header, options_.extract);
      if (text.empty()) {
        status = Complain(
            Status::Corrupt(input_->NameOf(i) + ": the header has no " +
                            options_.extract + ": --header shows what it has"));
      }
      anything |= !text.empty();
      out_.Append(text);
    }
    if (Status s = out_.Flush(); !s.ok()) return Complain(s);
    for (size_t i = 0; i < input_->size(); ++i) {
      const Status& read = input_->status(i);
      if (!read.ok()) (void)Complain(read.Prefixed(input_->NameOf(i)));
    }
    return Place(std::max(status, input_->ExitCode()), anything);
  }

  void PrintHeaders() {
    for (size_t i = 0; i < input_->size(); ++i) {
      // The first block has the description; reading goes on from there.
      if (!input_->ReadFirst(i).ok()) continue;
      const TraceReader& trace = input_->trace(i);
      out_.Append(options_.format == "jsonl"
                      ? DescribeTraceAsJson(trace)
                      : DescribeTrace(trace, options_.time));
    }
  }

  // What lies before that time, and is listed apart from operations.
  void WriteOthers(uint64_t until_ns) {
    aggregates_.TakeUntil(until_ns,
                          [&](const format::AggregateRecord& aggregate) {
                            exporter_->WriteAggregate(aggregate);
                          });
    // An alarm comes after the operation that raised it.
    alarms_.TakeUntil(until_ns,
                      [&](const std::string& line) { out_.Append(line); });
  }

  bool CanWrite() const {
    return out_.status().ok() && exporter_->status().ok();
  }

  void ListOperations() {
    Record record;
    uint64_t listed = 0;
    while (CanWrite() && (options_.limit == 0 || listed < options_.limit) &&
           input_->Next(&record)) {
      if (record.time_resolution_ns != 0) WriteOthers(record.real_ns);
      exporter_->Write(record);
      ++listed;
    }
    WriteOthers(UINT64_MAX);
    ExportSummary summary = {.traces = {}, .filter = options_.filter};
    for (size_t i = 0; i < input_->size(); ++i) {
      summary.traces.push_back(&input_->trace(i).context());
    }
    exporter_->Summarize(summary);
    exporter_->Finish();
  }

  // What was only counted is of no operation that a filter could look at.
  bool WantsCounts() const {
    return options_.filter.empty() && !options_.from && !options_.to;
  }
  bool CanReadAgain() const {
    return !options_.follow &&
           std::ranges::all_of(options_.traces, [](const std::string& path) {
             struct stat file = {};
             return path != "-" && ::stat(path.c_str(), &file) == 0 &&
                    S_ISREG(file.st_mode);
           });
  }
  std::function<void(size_t, const format::AggregateRecord&)> CountsSink() {
    return [this](size_t trace, const format::AggregateRecord& record) {
      stats_.AddCounts(trace, record,
                       query::CopiesCountForBothFiles(
                           input_->trace(trace).description().header));
    };
  }

  Status CountOperations() {
    query::Grouping operations(OpStats::Question());
    if (Status s = query::GroupTraces(input_.get(), &operations); !s.ok()) {
      return s;
    }
    stats_.TakeOperations(&operations);
    std::vector<const format::ReadStats*> traces;
    bool counted = false;
    for (size_t i = 0; i < input_->size(); ++i) {
      traces.push_back(&input_->trace(i).stats());
      counted |= traces.back()->aggregates != 0;
    }
    if (counted && WantsCounts() && CanReadAgain()) {
      auto again = reader::TraceInput::Open(InputOf(options_),
                                            {.aggregate = CountsSink()});
      if (!again.ok()) return again.status();
      (*again)->StopAt(&stop_);
      (*again)->ForEach([](const Record&, size_t) {});
    }
    out_.Append(options_.format == "jsonl" ? stats_.JsonLines(traces)
                                           : stats_.Table(traces));
    return {};
  }

  // Says what is wrong with the traces.
  int Finish() {
    const LeftOut left_out = exporter_->LeftOutSoFar();
    if (const std::string text = left_out.Text(); !text.empty()) {
      err_.Append(kDumpSays + text + " left out of --format " +
                  options_.format + ", which has no place for them\n");
    }
    err_.Append(input_->Problems(kDumpSays));
    (void)err_.Flush();  // nobody to tell
    return input_->ExitCode();
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
  OpStats stats_;
  AggregateQueue aggregates_;
  LineQueue alarms_;
  std::optional<EmbeddedFiles> files_;         // of --extract files
  std::optional<Progress> progress_;           // while reading
  std::unique_ptr<reader::TraceInput> input_;  // its sinks use the above
};

}  // namespace

reader::InputOptions InputOf(const DumpOptions& options) {
  reader::InputOptions input;
  input.traces = options.traces;
  input.keys = options.keys;
  input.filter = options.filter;
  input.utc = options.time == TimeStyle::kUtc;
  input.from = options.from;
  input.to = options.to;
  input.overlapping = options.overlapping;
  input.follow = options.follow;
  return input;
}

int Dump(const DumpOptions& options, OutputBuffer& out, OutputBuffer& err,
         const std::atomic<bool>& stop) {
  const auto say = [&err](const std::string& text) {
    err.Append(kDumpSays + text + "\n");
    (void)err.Flush();  // nobody to tell
  };
  if (options.wait) {
    // What can be said before is said before.
    if (!options.filter.empty()) {
      const auto filter = reader::RecordFilter::Compile(
          options.filter, "--filter", options.time == TimeStyle::kUtc);
      if (!filter.ok()) {
        say(filter.status().message());
        return ExitStatus(filter.status());
      }
    }
    if (!WaitForWriters(options.traces, say, &stop)) return 0;
  }
  if (options.browse) return Browse(options, out, err, stop);
  if (options.check_replayable) return CheckReplayable(options, out, err);
  auto output = ExportOutput::Open(options, out);
  if (!output.ok()) {
    say(output.status().message());
    return ExitStatus(output.status());
  }
  return Dumper(options, **output, err, stop).Run();
}

}  // namespace tracefs
