#include "tracefs/replay/compile.h"

#include <fcntl.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "tracefs/base/clock.h"
#include "tracefs/base/printable.h"
#include "tracefs/base/text.h"
#include "tracefs/event/op_set.h"
#include "tracefs/reader/event_filter.h"
#include "tracefs/reader/trace_files.h"
#include "tracefs/reader/trace_input.h"
#include "tracefs/replay/caller_words.h"
#include "tracefs/replay/undo_rooms.h"
#include "tracefs/text/escape.h"

namespace tracefs::replay {
namespace {

// What of a trace is to be replayed.
class Selection {
 public:
  Status Read(const CompileOptions& options) {
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

// The number of who did it: a process or, where those are not recorded, a
// thread.
std::optional<uint64_t> DoerOf(const format::Record& record) {
  for (const Field who : {Field::kPid, Field::kTid}) {
    if (record.event.Has(who)) return record.event.Get(who);
  }
  return std::nullopt;
}

// Undos that were killed halfway (undo_rooms.h): who made one of the folders
// that are left, or one that another of these took back, for which it moved the
// folder to its own.
Result<std::unordered_set<uint64_t>> FindKilledUndos(
    const CompileOptions& options) {
  std::unordered_set<uint64_t> killed;
  if (options.left_rooms.empty()) return killed;
  struct TakenBack {
    uint64_t maker = 0;
    uint64_t by = 0;
  };
  std::vector<TakenBack> taken_back;
  std::unordered_map<std::string, uint64_t> makers;
  const auto opened =
      reader::TraceInput::Open({.traces = options.traces,
                                .keys = options.keys,
                                .filter = "op IN { mkdir rename }",
                                .all_or_none = true},
                               {});
  if (!opened.ok()) return opened.status();
  format::Record record;
  while ((*opened)->Next(&record)) {
    const std::string name(record.Text(Field::kName));
    const std::optional<uint64_t> doer = DoerOf(record);
    if (!doer || !name.starts_with(kUndoRoom)) continue;
    if (record.event.op == Op::mkdir_) {
      makers[name] = *doer;
    } else if (const auto made = makers.find(name); made != makers.end()) {
      taken_back.push_back({made->second, *doer});
    }
  }
  for (const std::string& room : options.left_rooms) {
    if (const auto made = makers.find(room); made != makers.end()) {
      killed.insert(made->second);
    }
  }
  // Who took others back did so later than they worked.
  for (auto one = taken_back.rbegin(); one != taken_back.rend(); ++one) {
    if (killed.contains(one->by)) killed.insert(one->maker);
  }
  return killed;
}

bool WasBy(const std::unordered_set<uint64_t>& doers,
           const format::Record& record) {
  if (doers.empty()) return false;
  const std::optional<uint64_t> doer = DoerOf(record);
  return doer && doers.contains(*doer);
}

// Since the epoch; of one whose duration is not known when it began.
uint64_t EndOf(const format::Record& record) {
  const Event& event = record.event;
  return record.real_ns + event.GetOr0(Field::kLatency);
}

// Why a trace may lack changes that it was not to tell of; empty: it has all.
std::string LeftOutOf(const format::TraceContext& trace, bool complete) {
  const format::ReadStats& stats = trace.stats;
  if (stats.first_part != 0) {
    return "its parts before number " + std::to_string(stats.first_part) +
           " are not there";
  }
  if (complete && stats.goes_on != 0) {
    return "its parts from number " + std::to_string(stats.goes_on) +
           " on are not there";
  }
  if (stats.changes != 0) {
    return "its tracer was stopped, or had another filter, for a while";
  }
  const std::string_view text = trace.description.header.Get("filter.text");
  if (Trim(text).empty()) return {};
  const auto filter = reader::EventFilter::Compile(text, "filter");
  for (size_t i = 0; i < kOpCount; ++i) {
    const auto op = static_cast<Op>(i);
    if (!ChangesFiles(op) && !ChangesNames(op)) continue;
    if (!filter.ok() || ((*filter)->whole_ops() >> i & 1) == 0) {
      return "its filter leaves some out: { " + Printable(Trim(text)) + " }";
    }
  }
  return {};
}

// The plan that the arguments name, if they name one.
Result<std::optional<Compiled>> OpenPlan(const CompileOptions& options) {
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
  Result<PlanHeader> header = PlanReader::ReadHeader(fd.get());
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

std::vector<std::string> WithAllParts(const std::vector<std::string>& traces) {
  std::vector<std::string> all;
  for (const std::string& trace : traces) {
    for (std::string& part : AllParts(trace)) {
      if (std::ranges::find(all, part) == all.end()) {
        all.push_back(std::move(part));
      }
    }
  }
  return all;
}

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

Result<Compiled> Compile(const CompileOptions& options, bool dry) {
  Result<std::optional<Compiled>> plan = OpenPlan(options);
  if (!plan.ok()) return plan.status();
  if (*plan) return std::move(**plan);

  Compiled compiled;
  const uint64_t begin_ns = MonotonicNs();
  Selection selection;
  if (Status s = selection.Read(options); !s.ok()) return s;
  std::optional<reader::RecordFilter> undo;
  if (!options.undo.empty()) {
    auto filter =
        reader::RecordFilter::Compile(options.undo, options.undo_origin, false);
    if (!filter.ok()) return filter.status();
    undo.emplace(*std::move(filter));
  }
  const auto killed = FindKilledUndos(options);
  if (!killed.ok()) return killed.status();
  std::optional<PlanWriter> writer;
  if (!dry) {
    auto made = options.plan.empty()
                    ? PlanWriter::CreateUnnamed(TemporaryFolder())
                    : PlanWriter::Create(options.plan);
    if (!made.ok()) return made.status();
    writer = *std::move(made);
  }
  PlanBuilder builder(options.builder, writer ? &*writer : nullptr);
  reader::InputSinks sinks;
  sinks.state = [&](const format::StateRecord& state) {
    // A part of a trace does not end as the whole did.
    if (!state.at_end || selection.is_whole()) builder.TakeState(state);
  };
  sinks.progress = options.progress;
  const auto opened = reader::TraceInput::Open(
      {.traces = options.traces, .keys = options.keys, .all_or_none = true},
      std::move(sinks));
  if (!opened.ok()) return opened.status();
  reader::TraceInput& input = **opened;

  format::Record record;
  uint64_t sequence = 0;
  CallerWords callers(options.undo);
  while (input.Next(&record)) {
    if (!record.event.before) ++sequence;
    if (options.ended_by_ns != 0 && EndOf(record) > options.ended_by_ns) {
      continue;
    }
    const bool selected = selection.Has(record, sequence);
    const bool marked = undo && (undo->Keep(record) || WasBy(*killed, record));
    if (undo) callers.See(record, marked);
    if (Status s = builder.Take(record, selected, marked); !s.ok()) return s;
  }
  if (Status s = input.status(); !s.ok()) return s;
  bool process_records = false;
  for (size_t i = 0; i < input.size(); ++i) {
    process_records |= input.trace(i).context().stats.process_records != 0;
  }
  if (std::string why = callers.Missing(process_records); !why.empty()) {
    return Status::Invalid(options.undo_origin + ": " + why);
  }
  compiled.doubtful_callers = callers.doubtful();
  for (const auto& [filter, origin] :
       {std::pair<std::string, std::string>(options.filter, "--filter"),
        {options.undo, options.undo_origin}}) {
    for (const std::string& advice : input.AdviceOn(filter, origin)) {
      compiled.problems += options.says + advice + "\n";
    }
  }
  if (options.ended_by_ns == 0) {
    compiled.problems += input.Problems(options.says);
  }
  if (Status s = builder.Finish(); !s.ok()) return s;
  compiled.Add(builder);
  compiled.peak_nodes = builder.peak_nodes();
  compiled.model_bytes = builder.model_bytes();
  bool all_told = false;  // by one of them
  for (size_t i = 0; i < input.size(); ++i) {
    const format::TraceContext& trace = input.trace(i).context();
    const std::string left_out =
        LeftOutOf(trace, /*complete=*/options.ended_by_ns == 0);
    if (compiled.left_out.empty()) compiled.left_out = left_out;
    all_told |= left_out.empty();
    compiled.Add(trace, /*complete=*/options.ended_by_ns == 0);
    const format::TraceHeader& header = trace.description.header;
    if (compiled.kept.empty()) compiled.kept = header.Get("keep.folder");
    if (compiled.mount_point.empty()) {
      compiled.mount_point = header.Get("mount.point");
    }
  }
  if (all_told) compiled.left_out.clear();
  if (writer) {
    Result<UniqueFd> file = writer->Finish(compiled.header);
    if (!file.ok()) return file.status();
    compiled.plan = *std::move(file);
  }
  compiled.compile_ns = MonotonicNs() - begin_ns;
  return compiled;
}

}  // namespace tracefs::replay
