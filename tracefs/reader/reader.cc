#include "tracefs/reader/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "tracefs/base/printable.h"
#include "tracefs/format/byte_source.h"

namespace tracefs::reader {
namespace {

using format::ReadStep;
using format::TraceReader;

constexpr unsigned kMaxThreads = 64;

Result<std::unique_ptr<format::ByteSource>> OpenInput(
    const ReaderOptions::Input& input, bool follow) {
  if (input.memory) {
    return std::unique_ptr<format::ByteSource>(
        std::make_unique<format::MemorySource>(*input.memory));
  }
  UniqueFd fd(::fcntl(input.fd->get(), F_DUPFD_CLOEXEC, 0));
  if (!fd) return Status::System(errno, "cannot open the trace");
  return std::unique_ptr<format::ByteSource>(
      std::make_unique<format::FdSource>(std::move(fd), follow));
}

int CodeOf(const Status& status) {
  switch (ExitStatus(status)) {
    case 0:
      return TRACEFS_ITEM;
    case 1:
      return TRACEFS_BAD_DATA;
    case 2:
      return TRACEFS_BAD_USE;
    default:
      return TRACEFS_SYSTEM;
  }
}

}  // namespace

Reader::Reader(const ReaderOptions& options)
    : options_(options),
      traces_({.follow = options.follow,
               .memory_bytes = options.memory_bytes,
               .keys = options.keys,
               .watch = &watch_,
               .sinks = [this](size_t trace) {
                 TraceSinks sinks;
                 sinks.report = [this, trace](const format::Report& r) {
                   Found(trace, r);
                 };
                 sinks.process = [this, trace](const ProcessRecord& record) {
                   if (way_ != Way::kProcesses) return;
                   process_ = record;
                   process_trace_ = trace;
                 };
                 return sinks;
               }}) {
  Open();
}

void Reader::Open() {
  if (options_.lenient_kinds != 0 && !options_.on_finding) {
    FailCode(TRACEFS_BAD_USE,
             "lenience is asked for, and nobody to be told: set a report "
             "function (tracefs_options_on_report)");
    return;
  }
  if ((options_.lenient_kinds & options_.strict_kinds) != 0) {
    FailCode(TRACEFS_BAD_USE, "a kind cannot be both strict and lenient");
    return;
  }
  if (options_.inputs.empty()) {
    FailCode(TRACEFS_BAD_USE,
             "there is nothing to read: add a path, a descriptor or memory");
    return;
  }
  if (options_.filter != nullptr) traces_.SetFilter(options_.filter);
  traces_.SetRange(options_.range);
  std::vector<std::string> names;
  for (const ReaderOptions::Input& input : options_.inputs) {
    if (!input.memory && input.fd == nullptr) {
      names.push_back(input.name);
      continue;
    }
    auto source = OpenInput(input, options_.follow);
    if (!source.ok()) {
      Fail(source.status().Prefixed(Printable(input.name)));
      return;
    }
    traces_.AddSource(input.name, *std::move(source));
  }
  traces_.AddNamed(names, [this](const Status& s) { Fail(s); });
  heads_.resize(traces_.size());
  head_read_.resize(traces_.size());
  sought_.resize(traces_.size());
  for (size_t i = 0; i < traces_.size(); ++i) {
    const auto size = traces_.trace(i).frames().source().Size();
    if (!size) {
      total_bytes_ = 0;
      break;
    }
    total_bytes_ += *size;
  }
}

Reader::Code Reader::FailCode(Code code, std::string message) {
  if (code_ >= 0) {
    code_ = code;
    message_ = std::move(message);
  }
  return code_;
}

Reader::Code Reader::Fail(const Status& status) {
  if (watch_.cancelled.load()) {
    return FailCode(TRACEFS_CANCELLED, "reading was cancelled");
  }
  return FailCode(CodeOf(status), status.message());
}

void Reader::Found(size_t trace, const format::Report& report) {
  const int kind = FindingKind(report.kind);
  if (options_.on_finding) options_.on_finding({kind, trace, &report});
  if ((options_.strict_kinds & TRACEFS_KIND_BIT(kind)) == 0 || !strict_.ok()) {
    return;
  }
  strict_ = Status::Corrupt(Printable(traces_.trace(trace).context().name) +
                            ": " + report.Text());
}

FindingCounts Reader::Counts() const {
  FindingCounts counts{};
  for (size_t i = 0; i < traces_.size(); ++i) {
    AddCounts(traces_.trace(i).stats(), &counts);
  }
  return counts;
}

bool Reader::Complete() const {
  if (code_ != TRACEFS_END) return false;
  for (size_t i = 0; i < traces_.size(); ++i) {
    const format::ReadStats& stats = traces_.trace(i).stats();
    if (stats.Bad() || stats.MissingEvents() != 0) return false;
  }
  return true;
}

Reader::Code Reader::Check() {
  if (!strict_.ok()) return Fail(strict_);
  for (size_t i = 0; i < traces_.size(); ++i) {
    const Status& status = traces_.status(i);
    if (!status.ok()) {
      return Fail(status.Prefixed(Printable(traces_.trace(i).context().name)));
    }
  }
  return TRACEFS_ITEM;
}

Reader::Code Reader::Begin(Way way) {
  if (code_ != TRACEFS_ITEM) return code_;
  if (watch_.cancelled.load(std::memory_order_relaxed)) return Fail({});
  if (way_ == way) return TRACEFS_ITEM;
  if (way_ != Way::kNone) {
    return FailCode(TRACEFS_BAD_USE,
                    "events, processes, messages, blocks and columns exclude "
                    "each other: open another reader");
  }
  way_ = way;
  return TRACEFS_ITEM;
}

Reader::Code Reader::End() {
  const Code code = Check();
  if (code < 0) return code;
  code_ = TRACEFS_END;
  return code_;
}

Reader::Code Reader::ReadHeader(size_t trace) {
  if (code_ < 0) return code_;
  if (trace >= traces_.size()) return TRACEFS_END;
  if (way_ != Way::kNone) return TRACEFS_ITEM;  // what was read, is there
  return ReadHead(trace);
}

Reader::Code Reader::ReadHead(size_t trace) {
  if (head_read_[trace]) return TRACEFS_ITEM;
  TraceReader& reader = traces_.trace(trace);
  const Result<ReadStep> step = reader.NextBlock(&heads_[trace]);
  if (!strict_.ok()) return Fail(strict_);
  if (!step.ok()) {
    return Fail(step.status().Prefixed(Printable(reader.context().name)));
  }
  if (*step == ReadStep::kWait) return TRACEFS_WAIT;
  head_read_[trace] = true;
  return TRACEFS_ITEM;
}

Reader::Code Reader::TimeSpan(uint64_t* first, uint64_t* last) {
  *first = UINT64_MAX;
  *last = 0;
  for (size_t i = 0; i < traces_.size(); ++i) {
    const Code code = ReadHeader(i);
    if (code != TRACEFS_ITEM) return code;
    const Result<std::optional<TraceReader::Span>> span =
        traces_.trace(i).TimeSpan();
    if (!span.ok()) return Fail(span.status());
    if (!*span) continue;
    *first = std::min(*first, (*span)->first_ns);
    *last = std::max(*last, (*span)->last_ns);
  }
  return *last == 0 ? TRACEFS_END : TRACEFS_ITEM;
}

Reader::Code Reader::SeekTime(uint64_t real_ns) {
  if (code_ != TRACEFS_ITEM) return code_;
  if (way_ != Way::kNone) {
    return FailCode(TRACEFS_BAD_USE, "seek before the first event is read");
  }
  traces_.SetRange({real_ns, options_.range.to_ns});
  return TRACEFS_ITEM;
}

Reader::Code Reader::SeekBlock(size_t trace, uint64_t sequence) {
  if (code_ != TRACEFS_ITEM) return code_;
  if (way_ != Way::kNone || trace >= traces_.size()) {
    return FailCode(TRACEFS_BAD_USE,
                    trace >= traces_.size()
                        ? "there is no trace of that number"
                        : "seek before the first event is read");
  }
  const Code code = ReadHeader(trace);
  if (code != TRACEFS_ITEM) return code;
  if (!traces_.trace(trace).CanSeek()) {
    return FailCode(TRACEFS_BAD_USE,
                    "this input can only be read from front to back");
  }
  const Status status = traces_.trace(trace).SeekBlock(sequence);
  if (!status.ok()) return Fail(status);
  // The first block was read before: it is there, or left out.
  const format::BlockDecoder* const head = heads_[trace].get();
  if (head == nullptr || head->sequence() < sequence) {
    heads_[trace].reset();
    sought_[trace] = true;
  }
  return TRACEFS_ITEM;
}

Reader::Code Reader::NextEvent(const format::Record** record, size_t* trace) {
  const Code code = Begin(Way::kEvents);
  if (code != TRACEFS_ITEM) return code;
  GiveHeads();
  const ReadStep step = traces_.Next(&record_);
  if (!strict_.ok()) return Fail(strict_);
  if (step == ReadStep::kEnd) return End();
  if (step == ReadStep::kWait) {
    const Code checked = Check();
    return checked == TRACEFS_ITEM ? TRACEFS_WAIT : checked;
  }
  *record = &record_;
  *trace = traces_.NumberOf(record_);
  return TRACEFS_ITEM;
}

Reader::Code Reader::NextProcess(const ProcessRecord** record, size_t* trace) {
  const Code code = Begin(Way::kProcesses);
  if (code != TRACEFS_ITEM) return code;
  GiveHeads();
  process_.reset();
  while (!process_) {  // one may be out of the range
    const ReadStep step = traces_.NextProcess();
    if (!strict_.ok()) return Fail(strict_);
    if (step == ReadStep::kEnd) return End();
    if (step == ReadStep::kWait) {
      const Code checked = Check();
      return checked == TRACEFS_ITEM ? TRACEFS_WAIT : checked;
    }
  }
  *record = &*process_;
  *trace = process_trace_;
  return TRACEFS_ITEM;
}

void Reader::GiveHeads() {
  for (size_t i = 0; i < heads_.size(); ++i) {
    if (heads_[i] != nullptr) traces_.Give(i, std::move(heads_[i]));
  }
  heads_.clear();
}

Reader::Code Reader::BeginMessages() {
  if (messages_begun_) return TRACEFS_ITEM;
  TraceReader& reader = traces_.trace(at_trace_);
  const uint64_t from_ns = traces_.range().from_ns;
  if (from_ns != 0 && !sought_[at_trace_]) {
    // Block 0, which describes the others.
    const Code code = ReadHead(at_trace_);
    if (code != TRACEFS_ITEM) return code;
    // Where it cannot be sought, what comes before is passed over.
    const Status s = reader.CanSeek() ? reader.SeekTime(from_ns) : Status::Ok();
    if (!s.ok()) return Fail(s.Prefixed(Printable(reader.context().name)));
  }
  messages_begun_ = true;
  return TRACEFS_ITEM;
}

bool Reader::IsInRange() const {
  const TimeWindow& range = traces_.range();
  const format::BlockHead& head = block_->head();
  if (range.whole() || block_->sequence() == 0 || head.events == 0) return true;
  return head.clock.ToReal(head.first_ns) < range.to_ns &&
         head.clock.ToReal(head.last_ns) >= range.from_ns;
}

Reader::Code Reader::NextMessage(format::Message* message) {
  const Code code = Begin(Way::kMessages);
  if (code != TRACEFS_ITEM) return code;
  for (;;) {
    while (messages_ && messages_->Next(message)) {
      bool before;
      if (!options_.no_operations ||
          !format::OperationOf(message->msg_id, &before)) {
        return TRACEFS_ITEM;
      }
    }
    messages_.reset();
    block_.reset();
    if (at_trace_ == traces_.size()) return End();
    if (const Code begun = BeginMessages(); begun != TRACEFS_ITEM) return begun;
    if (heads_[at_trace_] != nullptr) {
      block_ = std::move(heads_[at_trace_]);
      if (IsInRange()) messages_.emplace(block_->bytes());
      continue;
    }
    TraceReader& reader = traces_.trace(at_trace_);
    const Result<ReadStep> step = reader.NextBlock(&block_);
    if (!strict_.ok()) return Fail(strict_);
    if (!step.ok()) {
      return Fail(step.status().Prefixed(Printable(reader.context().name)));
    }
    if (*step == ReadStep::kWait) return TRACEFS_WAIT;
    if (*step == ReadStep::kEnd) {
      ++at_trace_;
      messages_begun_ = false;
    } else if (IsInRange()) {
      messages_.emplace(block_->bytes());
    }
  }
}

Reader::Code Reader::NextBlock(tracefs_block* block) {
  const Code code = Begin(Way::kBlocks);
  if (code != TRACEFS_ITEM) return code;
  while (at_trace_ < traces_.size()) {
    TraceReader& reader = traces_.trace(at_trace_);
    format::FrameReader& frames = reader.frames();
    const auto fail = [&](const Status& s) {
      return Fail(s.Prefixed(Printable(reader.context().name)));
    };
    if (!preamble_told_) {
      frames.TakeAnyOrder();
      const Result<ReadStep> step = frames.ReadPreamble();
      if (!step.ok()) return fail(step.status());
      if (*step == ReadStep::kWait) return TRACEFS_WAIT;
      preamble_told_ = true;
      if (head_read_[at_trace_] && !sought_[at_trace_]) {
        // From the beginning again.
        const Status s = frames.Jump(frames.preamble_bytes().size());
        if (!s.ok()) {
          return fail(Status::Invalid(
              "of what cannot be read twice, read blocks before the header"));
        }
      }
      *block = {};
      block->trace = at_trace_;
      block->bytes = frames.preamble_bytes().data();
      block->size = frames.preamble_bytes().size();
      if (block->size != 0) return TRACEFS_ITEM;
    }
    format::Frame frame;
    const Result<ReadStep> step = frames.Next(&frame);
    if (!strict_.ok()) return Fail(strict_);
    if (!step.ok()) return fail(step.status());
    if (*step == ReadStep::kWait) return TRACEFS_WAIT;
    if (*step == ReadStep::kEnd) {
      ++at_trace_;
      preamble_told_ = false;
      continue;
    }
    *block = {};
    // The header stands before its payload.
    block->bytes = frame.payload.data() - format::kFrameHeaderBytes;
    block->size = format::kFrameHeaderBytes + frame.payload.size();
    block->trace = at_trace_;
    block->offset = frame.offset;
    block->number = frame.header.sequence;
    block->kind = frame.header.kind;
    return TRACEFS_ITEM;
  }
  return End();
}

Reader::Code Reader::NextBatch(const Batch::Specs& specs,
                               std::shared_ptr<Batch>* batch) {
  // What is left after some events were read, too.
  if (way_ == Way::kEvents && !options_.file_order) way_ = Way::kColumns;
  const bool at_begin = way_ == Way::kNone;
  const Code code = Begin(Way::kColumns);
  if (code != TRACEFS_ITEM) return code;
  if (merged_ != nullptr) return NextMerged(batch);
  // Threads do not wait for an input to grow. Descent is known
  // only to a reader that has seen all blocks before.
  const bool one_by_one =
      options_.follow ||
      (options_.filter != nullptr && options_.filter->asks_for_ancestors());
  if (one_by_one) return NextByTime(specs, batch);
  if (options_.file_order) return NextByBlock(specs, batch);
  if (!at_begin || Threads() == 1 ||
      traces_.size() > MergedColumns::kMostTraces) {
    return NextByTime(specs, batch);
  }
  const Code begun = BeginMerged(specs);
  return begun == TRACEFS_ITEM ? NextMerged(batch) : begun;
}

unsigned Reader::Threads() const {
  const unsigned wanted = options_.threads != 0
                              ? options_.threads
                              : std::thread::hardware_concurrency();
  return std::clamp(wanted, 1u, kMaxThreads);
}

std::unique_ptr<ParallelColumns> Reader::MakeColumns(size_t trace,
                                                     const Batch::Specs& specs,
                                                     unsigned threads,
                                                     bool to_merge) {
  return std::make_unique<ParallelColumns>(
      &traces_.trace(trace), trace,
      ParallelColumns::Options{.specs = specs,
                               .filter = options_.filter,
                               .range = traces_.range(),
                               .threads = threads,
                               .on_text = options_.on_text,
                               .first = std::move(heads_[trace]),
                               .to_merge = to_merge});
}

Reader::Code Reader::NextByTime(const Batch::Specs& specs,
                                std::shared_ptr<Batch>* batch) {
  GiveHeads();
  auto made = std::make_shared<Batch>(specs);
  while (made->rows() < options_.batch_rows && !made->full()) {
    const ReadStep step = traces_.Next(&record_);
    if (!strict_.ok()) return Fail(strict_);
    if (step == ReadStep::kItem) {
      made->Add(record_, traces_.NumberOf(record_));
      continue;
    }
    if (made->rows() != 0) break;
    if (step == ReadStep::kWait) return TRACEFS_WAIT;
    return End();
  }
  made->Finish(options_.on_text);
  *batch = std::move(made);
  return TRACEFS_ITEM;
}

Reader::Code Reader::BeginMerged(const Batch::Specs& specs) {
  merged_ = std::make_unique<MergedColumns>(
      MergedColumns::Options{.specs = specs,
                             .batch_rows = options_.batch_rows,
                             .memory_bytes = options_.memory_bytes});
  const unsigned threads =
      std::max(1u, Threads() / static_cast<unsigned>(traces_.size()));
  for (size_t i = 0; i < traces_.size(); ++i) {
    TraceReader& reader = traces_.trace(i);
    Status status;
    // Block 0, which describes the others. Unreadable files are reported after
    // the others have been read.
    if (!head_read_[i]) {
      status = reader.NextBlock(&heads_[i]).status();
      if (!strict_.ok()) return Fail(strict_);
      head_read_[i] = true;
    }
    if (!status.ok()) {
      merged_->Add(&reader, nullptr, std::move(status));
      continue;
    }
    // Where that fails, reading on tells.
    if (traces_.range().from_ns != 0) {
      (void)reader.SeekTime(traces_.range().from_ns);
    }
    merged_->Add(&reader, MakeColumns(i, specs, threads, /*to_merge=*/true),
                 {});
  }
  return TRACEFS_ITEM;
}

Reader::Code Reader::NextMerged(std::shared_ptr<Batch>* batch) {
  std::shared_ptr<Batch> made = merged_->Next();
  if (!strict_.ok()) return Fail(strict_);
  if (made == nullptr) {
    for (size_t i = 0; i < traces_.size(); ++i) {
      const Status& status = merged_->status(i);
      if (status.ok()) continue;
      return Fail(status.Prefixed(Printable(traces_.trace(i).context().name)));
    }
    return End();
  }
  made->Finish(options_.on_text);
  *batch = std::move(made);
  return TRACEFS_ITEM;
}

Reader::Code Reader::NextByBlock(const Batch::Specs& specs,
                                 std::shared_ptr<Batch>* batch) {
  for (; at_trace_ < traces_.size(); ++at_trace_) {
    TraceReader& reader = traces_.trace(at_trace_);
    const auto fail = [&](const Status& s) {
      return Fail(s.Prefixed(Printable(reader.context().name)));
    };
    if (columns_ == nullptr) {
      // Block 0, which describes the others.
      if (const Code code = ReadHead(at_trace_); code != TRACEFS_ITEM) {
        return code;
      }
      if (traces_.range().from_ns != 0) {
        const Status s = reader.SeekTime(traces_.range().from_ns);
        if (!s.ok()) return fail(s);
      }
      columns_ = MakeColumns(at_trace_, specs, Threads(), /*to_merge=*/false);
    }
    Result<std::shared_ptr<Batch>> next = columns_->Next();
    if (!strict_.ok()) return Fail(strict_);
    if (!next.ok()) return fail(next.status());
    if (*next != nullptr) {
      *batch = *std::move(next);
      return TRACEFS_ITEM;
    }
    columns_.reset();
  }
  return End();
}

}  // namespace tracefs::reader
