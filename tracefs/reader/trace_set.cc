#include "tracefs/reader/trace_set.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "filters/output/chain.h"
#include "tracefs/base/printable.h"

namespace tracefs::reader {

using format::ByteSource;
using format::ReadStep;
using format::TraceReader;

TraceSet::TraceSet(Options options)
    : options_(std::move(options)), merger_(options_.memory_bytes) {}

void TraceSet::AddNamed(const std::vector<std::string>& names,
                        const std::function<void(const Status&)>& fail) {
  std::vector<std::string> files;
  for (const std::string& name : names) {
    if (Status s = AddFiles(name, &files); !s.ok()) fail(s);
  }
  for (const TraceFiles& trace : JoinParts(files)) {
    if (Status s = AddTrace(trace); !s.ok()) fail(s);
  }
}

Status TraceSet::AddTrace(const TraceFiles& trace) {
  if (trace.paths.size() == 1) {
    Result<std::unique_ptr<ByteSource>> source =
        format::FdSource::Open(trace.paths[0], options_.follow);
    if (!source.ok()) return source.status().Prefixed(Printable(trace.name));
    // A regular file may turn out to be the first of several.
    if (!options_.follow || trace.paths[0] == "-" || !(*source)->Size()) {
      AddSource(trace.name, *std::move(source));
      return Status::Ok();
    }
  }
  AddSource(trace.name, std::make_unique<format::FileChain>(
                            trace.paths, options_.follow, LaterParts));
  return Status::Ok();
}

void TraceSet::AddSource(std::string name, std::unique_ptr<ByteSource> source) {
  if (options_.watch != nullptr) {
    source = std::make_unique<WatchedSource>(std::move(source), options_.watch);
  }
  TraceSinks sinks;
  if (options_.sinks) sinks = options_.sinks(merger_.size());
  if (sinks.process) {
    sinks.process =
        [this, i = merger_.size(),
         process = std::move(sinks.process)](const ProcessRecord& record) {
          if (!range_.Has(record.real_ns)) return;
          ProcessRecord told = record;
          told.process.machine = told.child.machine = OriginOf(i).machine;
          process(told);
        };
  }
  auto reader = std::make_unique<TraceReader>(
      std::move(source),
      format::TraceReaderOptions{
          .name = std::move(name),
          .follow = options_.follow,
          .report = std::move(sinks.report),
          .decoder = options_.decoder ? options_.decoder
                                      : MakeDecoderFactory(options_.keys),
          .aggregate = std::move(sinks.aggregate),
          .alarm = std::move(sinks.alarm),
          .state = std::move(sinks.state),
          .file = std::move(sinks.file),
          .process = std::move(sinks.process)});
  if (filter_ != nullptr) {
    reader->mutable_context().wanted_ops = filter_->wanted_ops();
  }
  reader->mutable_context().loss_window = range_;
  merger_.Add(std::move(reader));
}

void TraceSet::SetRange(const TimeWindow& range) {
  range_ = range;
  SetLossWindow(range);
}

void TraceSet::SetLossWindow(const TimeWindow& window) {
  for (size_t i = 0; i < merger_.size(); ++i) {
    merger_.reader(i).mutable_context().loss_window = window;
  }
}

void TraceSet::ReadLosses() {
  const uint64_t end_ns = EndOfLosses(range_);
  for (size_t i = 0; i < merger_.size(); ++i) {
    TraceReader& reader = merger_.reader(i);
    format::TraceContext& context = reader.mutable_context();
    // Of all else that is there nothing concerns who asked.
    format::ReadStats kept = context.stats;
    format::ReportSink report = std::exchange(
        context.report, [tell = context.report](const format::Report& r) {
          if (tell && r.kind == format::ReportKind::kLoss) tell(r);
        });
    context.wanted_ops = 0;
    for (std::unique_ptr<format::BlockDecoder> block;;) {
      const Result<ReadStep> step = reader.NextBlock(&block);
      if (!step.ok() || *step != ReadStep::kItem) break;
      const format::BlockHead& head = block->head();
      if (head.clock.ToReal(head.watermark_ns) >= end_ns) break;
    }
    kept.lost_events = context.stats.lost_events;
    kept.losses = std::move(context.stats.losses);
    kept.lost_messages = std::move(context.stats.lost_messages);
    context.stats = std::move(kept);
    context.report = std::move(report);
  }
}

void TraceSet::SetFilter(std::shared_ptr<const EventFilter> filter) {
  filter_ = std::move(filter);
  for (size_t i = 0; i < merger_.size(); ++i) {
    merger_.reader(i).mutable_context().wanted_ops =
        filter_ != nullptr ? filter_->wanted_ops() : UINT64_MAX;
  }
}

Result<TraceReader::Span> TraceSet::TimeSpan() {
  TraceReader::Span all;
  for (size_t i = 0; i < merger_.size(); ++i) {
    if (!ReadFirst(i).ok()) continue;  // told when it is read
    const Result<std::optional<TraceReader::Span>> span =
        merger_.reader(i).TimeSpan();
    if (!span.ok()) return span.status();
    if (!*span) continue;
    all.first_ns = all.first_ns == 0
                       ? (*span)->first_ns
                       : std::min(all.first_ns, (*span)->first_ns);
    all.last_ns = std::max(all.last_ns, (*span)->last_ns);
  }
  return all;
}

void TraceSet::Begin() {
  if (std::exchange(begun_, true) || range_.from_ns == 0) return;
  for (size_t i = 0; i < merger_.size(); ++i) {
    if (options_.follow && !merger_.reader(i).CanSeek()) continue;
    if (!ReadFirst(i).ok()) continue;
    // Where that fails, reading on tells.
    (void)merger_.reader(i).SeekTime(range_.from_ns);
  }
}

ReadStep TraceSet::Next(format::Record* record, bool hurry) {
  Begin();
  if (ended_) return ReadStep::kEnd;
  for (;;) {
    const ReadStep step = merger_.Next(record, hurry);
    if (step != ReadStep::kItem) return step;
    if (!range_.whole()) {
      if (record->time_resolution_ns == 0) {
        const bool asked = filter_ == nullptr || filter_->Keep(record->event);
        if (asked && !record->event.before) {
          ++trace(NumberOf(*record)).mutable_stats().timeless_events;
        }
        continue;
      }
      if (record->real_ns < range_.from_ns) continue;
      if (record->real_ns >= range_.to_ns) {
        ended_ = true;
        ReadLosses();
        return ReadStep::kEnd;
      }
    }
    if (record->trace->origin.machine == 0) (void)OriginOf(NumberOf(*record));
    if (filter_ != nullptr && !filter_->Keep(record->event)) continue;
    return step;
  }
}

ReadStep TraceSet::NextProcess() {
  if (!begun_) {
    for (size_t i = 0; i < merger_.size(); ++i) {
      merger_.reader(i).mutable_context().wanted_ops = 0;
    }
  }
  Begin();
  return merger_.NextProcess();
}

size_t TraceSet::NumberOf(const format::Record& record) const {
  for (size_t i = 0; i < merger_.size(); ++i) {
    if (record.trace == &merger_.reader(i).context()) return i;
  }
  return 0;
}

format::TraceOrigin TraceSet::OriginOf(size_t i) {
  format::TraceContext& trace = merger_.reader(i).mutable_context();
  if (trace.origin.machine == 0) {
    trace.origin = origins_.Of(trace.description.header);
    ShareProcesses(&trace);
  }
  return trace.origin;
}

void TraceSet::ShareProcesses(format::TraceContext* trace) {
  for (size_t i = 0; i < merger_.size(); ++i) {
    const format::TraceContext& other = merger_.reader(i).context();
    if (&other == trace || other.origin.machine != trace->origin.machine) {
      continue;
    }
    for (auto& [pid, known] : *trace->processes) {
      if (other.processes->size() >= format::KnownProcess::kMost) break;
      // An end tells neither name nor parent.
      format::KnownProcess& shared = (*other.processes)[pid];
      if (known.ppid != 0) shared.ppid = known.ppid;
      if (!known.comm.empty()) shared.comm = std::move(known.comm);
    }
    trace->processes = other.processes;
    return;
  }
}

bool TraceSet::AnythingRead() const {
  for (size_t i = 0; i < merger_.size(); ++i) {
    if (merger_.reader(i).stats().blocks != 0) return true;
  }
  return false;
}

void TraceSet::Stop() {
  for (size_t i = 0; i < merger_.size(); ++i) merger_.reader(i).Stop();
}

}  // namespace tracefs::reader
