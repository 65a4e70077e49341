#include "tracefs/query/trace_input.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "filters/input/name_service.h"
#include "filters/input/parse.h"
#include "tracefs/crypto/key_source.h"
#include "tracefs/reader/opaque_fields.h"
#include "tracefs/reader/parallel_columns.h"
#include "tracefs/reader/path_advice.h"
#include "tracefs/text/escape.h"

namespace tracefs::query {

using format::ReadStep;
using format::Record;

namespace {

constexpr unsigned kMaxThreads = 64;
constexpr size_t kInputBatchRows = 65536;
constexpr uint64_t kTellAfter = 4096;  // operations

// Whether it asks who began a process, which only a walk in order of time
// knows.
bool HasAncestor(const Ast& ast) {
  if (ast.kind == Ast::Kind::kPredicate) {
    return FieldByPredicate(ast.predicate.field.text) ==
           &Info(Field::kAncestor);
  }
  return std::ranges::any_of(ast.children, &HasAncestor);
}

}  // namespace

Result<std::unique_ptr<TraceInput>> TraceInput::Open(
    const InputOptions& options, InputSinks sinks) {
  std::unique_ptr<TraceInput> made(new TraceInput(options, std::move(sinks)));
  if (Status s = made->SetFilter(); !s.ok()) return s;
  const Status keys = AddKeyArguments(options.keys, "--key", made->keys_.get());
  if (!keys.ok()) return keys;
  made->traces_.AddNamed(options.traces, [&made](const Status& s) {
    made->not_opened_.push_back(s);
  });
  // Of nothing there is no table.
  if (made->traces_.size() == 0 && !made->not_opened_.empty()) {
    return made->not_opened_.front();
  }
  if (Status s = made->SetWindow(); !s.ok()) return s;
  return made;
}

TraceInput::TraceInput(const InputOptions& options, InputSinks sinks)
    : options_(options),
      sinks_(std::move(sinks)),
      traces_(
          {.keys = keys_, .sinks = [this](size_t i) { return SinksOf(i); }}) {}

Status TraceInput::SetFilter() {
  if (options_.filter.empty()) return {};
  if (TraceFilter::IsNeeded(options_.filter)) {
    auto filter = TraceFilter::Compile(options_.filter, SystemNameService(),
                                       names_, options_.utc);
    if (!filter.ok()) return filter.status();
    filter_.emplace(*std::move(filter));
    return {};
  }
  auto filter = reader::EventFilter::Compile(options_.filter, "--filter");
  if (!filter.ok()) return filter.status();
  for (const std::string& warning : (*filter)->warnings()) {
    if (sinks_.warn) sinks_.warn(warning);
  }
  compiled_ = *std::move(filter);
  const auto ast = ParseFilter(options_.filter);
  asks_for_ancestors_ = ast.ok() && HasAncestor(*ast);
  traces_.SetFilter(compiled_);
  return {};
}

TimeRange TraceInput::span() {
  if (!span_) {
    const auto found = traces_.TimeSpan();
    span_ =
        found.ok() ? TimeRange{found->first_ns, found->last_ns} : TimeRange{};
  }
  return *span_;
}

Status TraceInput::SetWindow() {
  if (!options_.from && !options_.to) return {};
  TimeRange times;
  const bool needs = (options_.from && options_.from->NeedsBegin()) ||
                     (options_.to && options_.to->NeedsBegin());
  if (needs) {
    times = span();
    if (times.begin_ns == 0) {
      return Status::Invalid(
          "when the trace begins and ends cannot be told before it is read: "
          "--from and --to take dates and @NANOSECONDS of it");
    }
  }
  const bool utc = options_.utc;
  const auto window = ResolveWindow(options_.from, options_.to, times, utc);
  if (!window.ok()) return window.status();
  window_ = *window;
  reader::TimeRange range = {window_.from_ns, window_.to_ns};
  // What runs at the begin may have begun long before.
  if (options_.overlapping) range.from_ns = 0;
  traces_.SetRange(range);
  return {};
}

reader::TraceSinks TraceInput::SinksOf(size_t trace) {
  reader::TraceSinks sinks;
  reports_.push_back(std::make_unique<ReportKeeper>());
  sinks.report = [this,
                  keeper = reports_.back().get()](const format::Report& r) {
    keeper->Add(r);
    if (sinks_.loss && r.kind == format::ReportKind::kLoss) sinks_.loss(r);
  };
  sinks.process = sinks_.process;
  if (sinks_.process_of) {
    sinks.process = [this, trace](const ProcessRecord& record) {
      sinks_.process_of(trace, record);
    };
  }
  if (sinks_.aggregate) {
    sinks.aggregate = [this, trace](const format::AggregateRecord& record) {
      if (window_.Has(record.real_to_ns)) sinks_.aggregate(trace, record);
    };
  }
  if (sinks_.alarm) {
    sinks.alarm = [this, trace](const format::AlarmRecord& record) {
      sinks_.alarm(trace, record);
    };
  }
  return sinks;
}

bool TraceInput::Overlaps(const Record& record) const {
  if (record.time_resolution_ns == 0) return false;
  if (window_.Has(record.real_ns)) return true;
  return window_.from_ns < window_.to_ns && record.real_ns < window_.to_ns &&
         record.event.Has(Field::kLatency) &&
         record.event.Get(Field::kLatency) > window_.from_ns - record.real_ns;
}

uint64_t TraceInput::BytesRead() const {
  uint64_t bytes = 0;
  for (size_t i = 0; i < traces_.size(); ++i) {
    bytes += traces_.trace(i).stats().bytes;
  }
  return bytes;
}

void TraceInput::ForEach(
    const std::function<void(Record&, size_t trace)>& use) {
  Record record;
  uint64_t count = 0;
  while (!Stopped() && traces_.Next(&record) == ReadStep::kItem) {
    if (++count % kTellAfter == 0 && sinks_.progress) {
      sinks_.progress(BytesRead());
    }
    if (options_.overlapping && !Overlaps(record)) continue;
    if (filter_ && !filter_->Keep(record)) continue;
    use(record, traces_.NumberOf(record));
  }
}

Status TraceInput::BatchesByTime(
    const reader::Batch::Specs& columns,
    const std::function<void(const reader::Batch&)>& use) {
  auto batch = std::make_unique<reader::Batch>(columns);
  const auto hand_on = [&] {
    batch->Finish({});
    if (batch->rows() != 0) use(*batch);
    batch = std::make_unique<reader::Batch>(columns);
  };
  ForEach([&](const Record& record, size_t trace) {
    batch->Add(record, trace);
    if (batch->rows() == kInputBatchRows || batch->full()) hand_on();
  });
  hand_on();
  return {};
}

Status TraceInput::ForEachBatch(
    const reader::Batch::Specs& columns,
    const std::function<void(const reader::Batch&)>& use) {
  // Threads that decode blocks see no process records, nor what was counted.
  if (filter_ || options_.overlapping || sinks_.process || sinks_.aggregate ||
      asks_for_ancestors_) {
    return BatchesByTime(columns, use);
  }
  const unsigned processors = std::max(1u, std::thread::hardware_concurrency());
  for (size_t i = 0; i < traces_.size() && !Stopped(); ++i) {
    // Block 0, which describes the others; unless it was read for the span.
    if (!span_) {
      if (const Status s = traces_.ReadFirst(i); !s.ok()) continue;
    }
    format::TraceReader& reader = traces_.trace(i);
    if (window_.from_ns != 0) (void)reader.SeekTime(window_.from_ns);
    // The threads of this one have what it counts.
    const uint64_t before = BytesRead() - reader.stats().bytes;
    reader::ParallelColumns parallel(
        &reader, i,
        {.specs = columns,
         .filter = compiled_,
         .range = traces_.range(),
         .threads =
             std::min(options_.threads == 0 ? processors : options_.threads,
                      kMaxThreads),
         .on_text = nullptr,
         .first = traces_.TakeFirst(i)});
    for (;;) {
      const auto batch = parallel.Next();
      if (!batch.ok())
        return batch.status().Prefixed(TerminalWord(reader.context().name));
      if (*batch == nullptr || Stopped()) break;
      use(**batch);
      if (sinks_.progress) sinks_.progress(before + parallel.offset());
    }
  }
  return {};
}

std::string TraceInput::Problems(const std::string& prefix) const {
  std::string text;
  for (const Status& status : not_opened_) {
    text += prefix + status.message() + "\n";
  }
  for (const std::string& advice :
       reader::AdviceOnPaths(options_.filter, "--filter", traces_)) {
    text += prefix + advice + "\n";
  }
  for (size_t i = 0; i < traces_.size(); ++i) {
    const format::TraceReader& trace = traces_.trace(i);
    const std::string name = TerminalWord(trace.context().name);
    const std::string opaque = reader::OpaqueAmong(
        reader::FieldsInFilter(options_.filter), trace.context());
    if (!opaque.empty()) text += prefix + name + ": --filter: " + opaque + "\n";
    text += reports_[i]->Text(prefix + name + ": ", trace.stats());
    if (!traces_.status(i).ok()) {
      text += prefix + traces_.status(i).Prefixed(name).message() + "\n";
    }
  }
  return text;
}

int TraceInput::ExitCode() const {
  int code = 0;
  for (const Status& status : not_opened_) {
    code = std::max(code, ExitStatus(status));
  }
  for (size_t i = 0; i < traces_.size(); ++i) {
    const Status& status = traces_.status(i);
    if (!status.ok()) {
      code = std::max(code, ExitStatus(status));
    } else if (traces_.trace(i).stats().Bad()) {
      code = std::max(code, 1);
    }
  }
  return code;
}

}  // namespace tracefs::query
