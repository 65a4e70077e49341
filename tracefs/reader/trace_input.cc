#include "tracefs/reader/trace_input.h"

#include <time.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "filters/output/chain.h"
#include "filters/output/proof.h"
#include "tracefs/base/clock.h"
#include "tracefs/crypto/key_source.h"
#include "tracefs/reader/opaque_fields.h"
#include "tracefs/reader/parallel_columns.h"
#include "tracefs/text/escape.h"

namespace tracefs::reader {

using format::ReadStep;
using format::Record;

namespace {

constexpr unsigned kMaxInputThreads = 64;
constexpr size_t kInputBatchRows = 65536;
// Operations from one look at how far it is to the next.
constexpr uint64_t kTellAfter = 4096;
// How long `follow` sleeps at the end of its input, and after how long it hands
// on what it has although an operation that began earlier may still come.
constexpr uint64_t kSleepNs = 50 * kNsPerMs;
constexpr uint64_t kPatienceNs = kNsPerSecond;

}  // namespace

std::string NarrowedBy(const InputOptions& options) {
  std::vector<std::string_view> names;
  if (!options.filter.empty()) names.push_back("--filter");
  if (options.from) names.push_back("--from");
  if (options.to) names.push_back("--to");
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i != 0) text += i + 1 == names.size() ? " and " : ", ";
    text += names[i];
  }
  return text;
}

Result<std::unique_ptr<TraceInput>> TraceInput::Open(
    const InputOptions& options, InputSinks sinks) {
  std::unique_ptr<TraceInput> made(new TraceInput(options, std::move(sinks)));
  if (Status s = made->SetFilter(); !s.ok()) return s;
  const Status keys = AddKeyArguments(options.keys, "--key", made->keys_.get());
  if (!keys.ok()) return keys;
  made->traces_.AddNamed(options.traces, [&made](const Status& s) {
    made->not_opened_.push_back(s);
    if (made->sinks_.not_opened) made->sinks_.not_opened(s);
  });
  if (!made->not_opened_.empty() &&
      (options.all_or_none ||
       (made->traces_.size() == 0 && !made->sinks_.not_opened))) {
    return made->not_opened_.front();
  }
  if (Status s = made->SetWindow(); !s.ok()) return s;
  return made;
}

TraceInput::TraceInput(const InputOptions& options, InputSinks sinks)
    : options_(options),
      sinks_(std::move(sinks)),
      traces_({.follow = options_.follow,
               .keys = keys_,
               .decoder = MakeDecoderFactory(
                   keys_, [this](const BlockNotes& notes) { Judge(notes); }),
               .sinks = [this](size_t i) { return SinksOf(i); }}) {}

void TraceInput::Judge(const BlockNotes& notes) {
  if (!keys_->can_verify() || unproven_) return;
  if (!ProofOf(notes, *keys_).proven()) unproven_ = true;
}

Status TraceInput::SetFilter() {
  if (options_.filter.empty()) return {};
  auto filter =
      RecordFilter::Compile(options_.filter, "--filter", options_.utc);
  if (!filter.ok()) return filter.status();
  filter_.emplace(*std::move(filter));
  filter_here_ = filter_->compiled() == nullptr;
  if (filter_here_) return {};
  filter_here_ = options_.everything;
  for (const std::string& warning : filter_->compiled()->warnings()) {
    if (sinks_.warn) sinks_.warn(warning);
  }
  if (!filter_here_) traces_.SetFilter(filter_->compiled());
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
  bool needs_begin = false;
  bool needs_end = false;
  for (const auto& spec : {options_.from, options_.to}) {
    needs_begin |= spec && spec->NeedsBegin();
    needs_end |= spec && spec->NeedsEnd();
  }
  if (needs_end && options_.follow) {
    return Status::Invalid(
        "--follow: where the trace ends is not known yet; --from and --to take "
        "dates, clock times and +TIME");
  }
  TimeRange times;
  if (needs_begin) {
    const auto found = traces_.TimeSpan();
    if (!found.ok()) return found.status();
    times = {found->first_ns, found->last_ns};
    span_ = times;
    if (times.begin_ns == 0) {
      return Status::Invalid(
          "when the trace begins and ends cannot be told before it is read: "
          "--from and --to take dates and @NANOSECONDS of it");
    }
  }
  const auto window =
      ResolveWindow(options_.from, options_.to, times, options_.utc);
  if (!window.ok()) return window.status();
  window_ = *window;
  WarnOfEmptyWindow();
  TimeWindow range = window_;
  // What runs at the begin may have begun long before.
  if (options_.overlapping || options_.everything) range.from_ns = 0;
  traces_.SetRange(range);
  traces_.SetLossWindow(window_);
  return {};
}

// As when a clock time is not of the day that was meant.
void TraceInput::WarnOfEmptyWindow() {
  if (options_.follow || options_.overlapping || !sinks_.warn) return;
  const TimeRange times = span();
  const bool after = window_.from_ns > times.end_ns;
  if (times.begin_ns == 0 || (!after && window_.to_ns > times.begin_ns)) return;
  sinks_.warn(
      (after ? "--from is after the last operation, which began at "
             : "--to is before the first operation, which began at ") +
      TimeSpecText(after ? times.end_ns : times.begin_ns, options_.utc));
}

TraceSinks TraceInput::SinksOf(size_t trace) {
  TraceSinks sinks;
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
      if (window_.Has(record.real_to_ns) || ShareOf(record) != Share::kNone) {
        sinks_.aggregate(trace, record);
      }
    };
  }
  if (sinks_.alarm) {
    sinks.alarm = [this, trace](const format::AlarmRecord& record) {
      if (window_.Has(record.operation->real_ns)) sinks_.alarm(trace, record);
    };
  }
  sinks.state = sinks_.state;
  sinks.file = sinks_.file;
  return sinks;
}

TraceInput::Share TraceInput::ShareOf(
    const format::AggregateRecord& record) const {
  if (record.real_from_ns >= window_.from_ns &&
      record.real_to_ns <= window_.to_ns) {
    return Share::kAll;
  }
  return record.real_to_ns > window_.from_ns &&
                 record.real_from_ns < window_.to_ns
             ? Share::kSome
             : Share::kNone;
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

void TraceInput::Wait() {
  if (sinks_.idle) sinks_.idle();
  // A signal may end it early, which is as well.
  const timespec time = {.tv_sec = 0, .tv_nsec = kSleepNs};
  ::nanosleep(&time, nullptr);
  waited_ns_ += kSleepNs;
}

bool TraceInput::Next(Record* record) {
  read_on_ = true;
  for (;;) {
    if (Stopped()) {
      if (!options_.follow) return false;
      traces_.Stop();
    }
    if (++looked_at_ % kTellAfter == 0 && sinks_.progress) {
      sinks_.progress(BytesRead());
    }
    const bool hurry = waited_ns_ >= kPatienceNs;
    const ReadStep step = traces_.Next(record, hurry);
    if (step == ReadStep::kEnd) return false;
    if (step == ReadStep::kWait) {
      Wait();
      continue;
    }
    if (!hurry) waited_ns_ = 0;
    if (options_.overlapping && !Overlaps(*record)) continue;
    asked_ = (!filter_here_ || filter_->Keep(*record)) &&
             (!options_.everything || window_.whole() ||
              window_.Has(record->real_ns));
    if (!asked_ && !options_.everything) continue;
    return true;
  }
}

void TraceInput::ForEach(
    const std::function<void(Record&, size_t trace)>& use) {
  Record record;
  while (Next(&record)) use(record, NumberOf(record));
}

Status TraceInput::BatchesByTime(const Batch::Specs& columns,
                                 const std::function<void(const Batch&)>& use) {
  auto batch = std::make_unique<Batch>(columns);
  const auto hand_on = [&] {
    batch->Finish({});
    if (batch->rows() != 0) use(*batch);
    batch = std::make_unique<Batch>(columns);
  };
  ForEach([&](const Record& record, size_t trace) {
    batch->Add(record, trace);
    if (batch->rows() == kInputBatchRows || batch->full()) hand_on();
  });
  hand_on();
  return {};
}

Status TraceInput::ForEachBatch(const Batch::Specs& columns,
                                const std::function<void(const Batch&)>& use) {
  // Threads that decode blocks see no process records, nor what was counted.
  const auto compiled = filter_ ? filter_->compiled() : nullptr;
  if (filter_here_ || options_.overlapping || options_.everything ||
      sinks_.process || sinks_.aggregate ||
      (compiled != nullptr && compiled->asks_for_ancestors())) {
    return BatchesByTime(columns, use);
  }
  read_on_ = true;
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
    ParallelColumns parallel(
        &reader, i,
        {.specs = columns,
         .filter = compiled,
         .range = traces_.range(),
         .threads =
             std::min(options_.threads == 0 ? processors : options_.threads,
                      kMaxInputThreads),
         .on_text = nullptr,
         .first = traces_.TakeFirst(i)});
    for (;;) {
      const auto batch = parallel.Next();
      if (!batch.ok()) return batch.status().Prefixed(NameOf(i));
      if (*batch == nullptr || Stopped()) break;
      use(**batch);
      if (sinks_.progress) sinks_.progress(before + parallel.offset());
    }
  }
  return {};
}

std::string TraceInput::NameOf(size_t i) const {
  return TerminalWord(trace(i).context().name);
}

std::string TraceInput::Problems(const std::string& prefix) const {
  std::string text;
  if (!sinks_.not_opened) {
    for (const Status& status : not_opened_) {
      text += prefix + status.message() + "\n";
    }
  }
  if (unproven_) {
    text += prefix + kNotAllProven + "\n";
  }
  for (const std::string& advice : AdviceOn(options_.filter, "--filter")) {
    text += prefix + advice + "\n";
  }
  for (size_t i = 0; i < traces_.size(); ++i) {
    const std::string opaque =
        OpaqueAmong(FieldsInFilter(options_.filter), trace(i).context());
    if (!opaque.empty()) {
      text += prefix + NameOf(i) + ": --filter: " + opaque + "\n";
    }
    text += reports_[i]->Text(prefix + NameOf(i) + ": ", trace(i).stats());
    if (!traces_.status(i).ok()) {
      text += prefix + traces_.status(i).Prefixed(NameOf(i)).message() + "\n";
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
    const format::ReadStats& stats = trace(i).stats();
    if (!status.ok()) {
      code = std::max(code, ExitStatus(status));
    } else if (read_on_ ? stats.Bad() : stats.no_header) {
      code = std::max(code, 1);
    }
  }
  return code;
}

Status TraceInput::status() const {
  for (size_t i = 0; i < traces_.size(); ++i) {
    if (!traces_.status(i).ok()) return traces_.status(i).Prefixed(NameOf(i));
  }
  return {};
}

}  // namespace tracefs::reader
