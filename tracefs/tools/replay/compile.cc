#include "tracefs/tools/replay/compile.h"

#include <fcntl.h>

#include <cstdlib>
#include <memory>

#include "tracefs/base/clock.h"
#include "tracefs/command/progress.h"
#include "tracefs/reader/trace_input.h"
#include "tracefs/text/escape.h"
#include "tracefs/tools/replay/caller_words.h"
#include "tracefs/tools/replay/main.h"

namespace tracefs {
namespace {

// What of a trace is to be replayed.
class Selection {
 public:
  Status Read(const ReplayOptions& options) {
    from_ = options.from;
    to_ = options.to;
    if (options.filter.empty()) return {};
    auto filter =
        reader::RecordFilter::Compile(options.filter, "--filter", false);
    if (!filter.ok()) return filter.status();
    filter_.emplace(*std::move(filter));
    return {};
  }

  bool is_whole() const { return !filter_ && !from_ && !to_; }

  bool Has(format::Record& record, uint64_t sequence) {
    if (first_real_ns_ == 0) {
      first_real_ns_ = record.real_ns;
      if (from_) begin_ = BoundOf(*from_, first_real_ns_);
      if (to_) end_ = BoundOf(*to_, first_real_ns_);
    }
    const uint64_t ns =
        record.real_ns - std::min(record.real_ns, first_real_ns_);
    if (from_ && (begin_.sequence != UINT64_MAX ? sequence < begin_.sequence
                                                : ns < begin_.ns)) {
      return false;
    }
    if (to_ && (sequence >= end_.sequence || ns >= end_.ns)) return false;
    return !filter_ || filter_->Keep(record);
  }

 private:
  std::optional<reader::RecordFilter> filter_;
  std::optional<TracePoint> from_;
  std::optional<TracePoint> to_;
  Bound begin_;
  Bound end_;
  uint64_t first_real_ns_ = 0;
};

// The plan that the arguments name, if they name one.
Result<std::optional<Compiled>> OpenPlan(const ReplayOptions& options) {
  if (options.traces.size() != 1 || options.traces[0] == "-") {
    return std::optional<Compiled>();
  }
  UniqueFd fd(
      ::open(options.traces[0].c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return std::optional<Compiled>();  // the reader says why
  char magic[7] = {};
  if (::pread(fd.get(), magic, sizeof magic, 0) != sizeof magic ||
      std::string_view(magic, 6) != "TFPLAN") {
    return std::optional<Compiled>();
  }
  Result<replay::PlanHeader> header = replay::PlanReader::ReadHeader(fd.get());
  if (!header.ok()) {
    return header.status().Prefixed(TerminalWord(options.traces[0]));
  }
  if (!options.filter.empty() || options.from || options.to) {
    return Status::Invalid(TerminalWord(options.traces[0]) +
                           " is a plan: select when it is made");
  }
  if (!options.undo.empty()) {
    return Status::Invalid("--undo takes a trace, not a plan");
  }
  Compiled compiled;
  compiled.plan = std::move(fd);
  compiled.header = *header;
  return std::optional(std::move(compiled));
}

}  // namespace

std::string TemporaryFolder() {
  const char* const folder = ::getenv("TMPDIR");
  return folder != nullptr && *folder != '\0' ? folder : "/tmp";
}

Bound BoundOf(const TracePoint& point, uint64_t first_real_ns) {
  Bound bound;
  if (point.sequence) {
    bound.sequence = *point.sequence;
  } else {
    const uint64_t at =
        ResolveTime(point.time, {.begin_ns = first_real_ns}, /*utc=*/false);
    bound.ns = at - std::min(at, first_real_ns);
  }
  return bound;
}

Result<Compiled> Compile(const ReplayOptions& options, bool dry) {
  Result<std::optional<Compiled>> plan = OpenPlan(options);
  if (!plan.ok()) return plan.status();
  if (*plan) return std::move(**plan);

  Compiled compiled;
  const uint64_t begin_ns = MonotonicNs();
  Selection selection;
  if (Status s = selection.Read(options); !s.ok()) return s;
  std::optional<reader::RecordFilter> undo;
  if (!options.undo.empty()) {
    auto filter = reader::RecordFilter::Compile(options.undo, "--undo", false);
    if (!filter.ok()) return filter.status();
    undo.emplace(*std::move(filter));
  }
  std::optional<replay::PlanWriter> writer;
  if (!dry) {
    auto made = options.plan.empty()
                    ? replay::PlanWriter::CreateUnnamed(TemporaryFolder())
                    : replay::PlanWriter::Create(options.plan);
    if (!made.ok()) return made.status();
    writer = *std::move(made);
  }
  replay::PlanBuilder builder(options.builder, writer ? &*writer : nullptr);
  reader::InputSinks sinks;
  sinks.state = [&](const format::StateRecord& state) {
    // A part of a trace does not end as the whole did.
    if (!state.at_end || selection.is_whole()) builder.TakeState(state);
  };
  Progress progress(options.traces);
  sinks.progress = [&](uint64_t bytes) { progress.Tell(bytes); };
  const auto opened = reader::TraceInput::Open(
      {.traces = options.traces, .keys = options.keys, .all_or_none = true},
      std::move(sinks));
  if (!opened.ok()) return opened.status();
  reader::TraceInput& input = **opened;

  format::Record record;
  uint64_t sequence = 0;
  CallerWords callers;
  while (input.Next(&record)) {
    if (!record.event.before) ++sequence;
    const bool selected = selection.Has(record, sequence);
    if (undo) callers.See(record);
    const bool marked = undo && undo->Keep(record);
    if (Status s = builder.Take(record, selected, marked); !s.ok()) return s;
  }
  progress.Hide();
  if (Status s = input.status(); !s.ok()) return s;
  if (std::string why = callers.Missing(options.undo); !why.empty()) {
    return Status::Invalid("--undo: " + why);
  }
  for (const auto& [filter, origin] :
       {std::pair(options.filter, "--filter"), {options.undo, "--undo"}}) {
    for (const std::string& advice : input.AdviceOn(filter, origin)) {
      compiled.problems += std::string(kReplaySays) + advice + "\n";
    }
  }
  compiled.problems += input.Problems(kReplaySays);
  if (Status s = builder.Finish(); !s.ok()) return s;
  compiled.Add(builder);
  compiled.peak_nodes = builder.peak_nodes();
  compiled.model_bytes = builder.model_bytes();
  for (size_t i = 0; i < input.size(); ++i) {
    compiled.Add(input.trace(i).context());
    if (compiled.kept.empty()) {
      compiled.kept =
          input.trace(i).context().description.header.Get("keep.folder");
    }
  }
  if (writer) {
    Result<UniqueFd> file = writer->Finish(compiled.header);
    if (!file.ok()) return file.status();
    compiled.plan = *std::move(file);
  }
  compiled.compile_ns = MonotonicNs() - begin_ns;
  return compiled;
}

}  // namespace tracefs
