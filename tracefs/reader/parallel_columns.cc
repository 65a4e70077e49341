#include "tracefs/reader/parallel_columns.h"

#include <errno.h>

#include <algorithm>
#include <utility>

#include "tracefs/base/thread.h"

namespace tracefs::reader {

using format::ReadStep;
using format::Report;
using format::ReportKind;

ParallelColumns::ParallelColumns(format::TraceReader* reader, size_t trace,
                                 Options options)
    : reader_(reader),
      trace_(trace),
      options_(std::move(options)),
      tell_(reader->context().report) {}

// One thread is enough where the system has no more.
Status ParallelColumns::Start() {
  reader_->mutable_context().report = KeepIn(&found_);
  Status status;
  while (status.ok() && threads_.size() < options_.threads) {
    std::thread thread;
    status = StartThread(
        "tracefs-reader", [this] { Work(); }, &thread);
    if (status.ok()) threads_.push_back(std::move(thread));
  }
  if (!threads_.empty()) return Status::Ok();
  reader_->mutable_context().report = tell_;
  return status;
}

ParallelColumns::~ParallelColumns() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    taken_ = begun_;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  if (!threads_.empty()) reader_->mutable_context().report = tell_;
}

format::ReportSink ParallelColumns::KeepIn(std::vector<KeptReport>* reports) {
  // Many of a hostile block would say the same.
  constexpr size_t kMostReports = 1000;
  return [reports](const Report& report) {
    if (reports->size() >= kMostReports) return;
    reports->push_back({report, std::string(report.detail)});
  };
}

void ParallelColumns::Read(Job* job) {
  format::Frame frame;
  const Result<ReadStep> step = reader_->NextPayload(&frame);
  job->reports = std::exchange(found_, {});
  if (!step.ok() || *step != ReadStep::kItem) {
    job->end = true;
    job->status = step.status();
    return;
  }
  job->header = frame.header;
  job->offset = frame.offset;
  job->payload.assign(frame.payload.begin(), frame.payload.end());
}

void ParallelColumns::Work() noexcept {
  try {
    DecodeBlocks();
  } catch (...) {
    const std::lock_guard lock(mutex_);
    out_of_memory_ = ended_ = true;
    changed_.notify_all();
  }
}

void ParallelColumns::DecodeBlocks() {
  std::unique_ptr<format::PayloadDecoder> decoder;
  std::unique_ptr<format::TraceContext> context;
  std::unique_lock lock(mutex_);
  Status made;
  {
    auto result = reader_->MakeDecoder();
    if (result.ok()) {
      decoder = *std::move(result);
    } else {
      made = result.status();
    }
  }
  for (;;) {
    changed_.wait(lock, [this] {
      return ended_ || begun_ - taken_ < kAhead * options_.threads;
    });
    if (ended_) return;
    const uint64_t number = begun_++;
    Job job;
    if (made.ok()) {
      Read(&job);
    } else {
      job.end = true;
      job.status = made;
    }
    ended_ = ended_ || job.end;
    if (!job.end) {
      lock.unlock();
      Decode(&job, decoder.get(), &context);
      lock.lock();
    }
    done_.emplace(number, std::move(job));
    changed_.notify_all();
  }
}

std::unique_ptr<format::TraceContext> ParallelColumns::MakeContext() const {
  // Block 0 was read: these change no more.
  auto context = std::make_unique<format::TraceContext>();
  context->name = reader_->context().name;
  context->description = reader_->context().description;
  context->widths = reader_->context().widths;
  context->wanted_ops = reader_->context().wanted_ops;
  context->from_real_ns = reader_->context().from_real_ns;
  context->loss_window = reader_->context().loss_window;
  return context;
}

std::shared_ptr<Batch> ParallelColumns::Fill(format::BlockDecoder* block,
                                             format::ReadStats* stats) const {
  auto batch = std::make_shared<Batch>(options_.specs);
  const TimeWindow& range = options_.range;
  const bool whole = range.whole();
  batch->mutable_order().clock = block->head().clock;
  format::Record record;
  while (!block->at_end() && !batch->full()) {
    const uint64_t time = block->next_time();
    if (!block->Next(&record)) continue;  // what happened to a process
    const bool timeless = record.time_resolution_ns == 0;
    if (!whole && !timeless && !range.Has(record.real_ns)) continue;
    if (options_.filter != nullptr && !options_.filter->Keep(record.event)) {
      continue;
    }
    if (!whole && timeless) {
      if (!record.event.before) ++stats->timeless_events;
      continue;
    }
    batch->Add(record, trace_);
    if (options_.to_merge) batch->mutable_order().times.push_back(time);
  }
  return batch;
}

void ParallelColumns::FinishBatch(Batch* batch) const {
  if (!options_.to_merge) batch->Finish(options_.on_text);
}

const format::BlockDecoder* ParallelColumns::Pending() const {
  if (rest_.block != nullptr) return rest_.block.get();
  const format::BlockDecoder* const first = options_.first.get();
  return first != nullptr && !first->at_end() ? first : nullptr;
}

uint64_t ParallelColumns::watermark_ns() const {
  const format::BlockDecoder* const pending = Pending();
  return pending == nullptr ? watermark_ns_
                            : std::min(watermark_ns_, pending->next_time());
}

void ParallelColumns::Decode(Job* job, format::PayloadDecoder* decoder,
                             std::unique_ptr<format::TraceContext>* own) {
  if (*own == nullptr) *own = MakeContext();
  format::TraceContext* const context = own->get();
  context->stats = {};
  context->report = KeepIn(&job->reports);
  std::vector<std::byte> messages;
  const Status decoded = decoder->Decode(job->header, job->payload, &messages);
  job->payload = std::vector<std::byte>();  // {} would only empty it
  if (!decoded.ok()) {
    ++job->stats.undecodable_blocks;
    context->Tell({.kind = ReportKind::kUndecodable,
                   .offset = job->offset,
                   .number = job->header.sequence,
                   .detail = decoded.message()});
    return;
  }
  auto block = std::make_unique<format::BlockDecoder>(context);
  if (block->Open(std::move(messages), job->header.sequence, job->offset)) {
    ++context->stats.blocks;
    job->watermark_ns = block->head().watermark_ns;
    job->watermark_real_ns = block->head().clock.ToReal(job->watermark_ns);
    job->batch = Fill(block.get(), &context->stats);
    if (!options_.on_text) FinishBatch(job->batch.get());
  }
  job->stats = std::exchange(context->stats, {});
  if (block->at_end()) return;
  job->rest = {std::move(*own), std::move(block)};
}

void ParallelColumns::Account(Job* job) {
  format::ReadStats& stats = reader_->mutable_stats();
  std::erase_if(job->reports, [&stats](const KeptReport& kept) {
    const auto id = static_cast<uint16_t>(kept.report.number);
    return (kept.report.kind == ReportKind::kUnknownMessage &&
            stats.unknown_messages.contains(id)) ||
           (kept.report.kind == ReportKind::kUnknownArgument &&
            stats.unknown_arguments.contains(id));
  });
  stats.AddBlocks(job->stats);
}

Result<std::shared_ptr<Batch>> ParallelColumns::Next() {
  const auto tell = [this](const std::vector<KeptReport>& reports) {
    for (const KeptReport& kept : reports) {
      Report report = kept.report;
      report.detail = kept.detail;
      if (tell_) tell_(report);
    }
  };
  if (threads_.empty()) {
    if (std::shared_ptr<Batch> batch = NextOfFirst()) return batch;
    if (Status s = Start(); !s.ok()) return s;
  }
  if (rest_.block != nullptr) return NextOfRest();
  while (!finished_) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock,
                  [this] { return done_.contains(taken_) || out_of_memory_; });
    if (!done_.contains(taken_)) {
      finished_ = true;
      return Status::System(ENOMEM, "cannot decode a block");
    }
    Job job = std::move(done_.extract(taken_).mapped());
    ++taken_;
    offset_ = std::max(offset_, job.offset);
    Account(&job);
    // No later block has an operation that began before, nor tells of a loss.
    const bool beyond = options_.range.to_ns != UINT64_MAX && !job.end &&
                        job.watermark_real_ns >= EndOfLosses(options_.range);
    ended_ = ended_ || beyond;
    lock.unlock();
    changed_.notify_all();
    tell(job.reports);
    if (job.end && job.status.ok()) {
      // All that was begun has been taken.
      reader_->Finish();
      tell(std::exchange(found_, {}));
    }
    finished_ = job.end || beyond;
    if (!job.status.ok()) return job.status;
    watermark_ns_ = std::max(watermark_ns_, job.watermark_ns);
    rest_ = std::move(job.rest);
    if (rest_.context != nullptr) rest_.context->report = tell_;
    if (job.batch == nullptr || job.batch->rows() == 0) continue;
    if (options_.on_text) FinishBatch(job.batch.get());
    return std::move(job.batch);
  }
  return std::shared_ptr<Batch>();
}

std::shared_ptr<Batch> ParallelColumns::NextOfFirst() {
  format::BlockDecoder* const block = options_.first.get();
  if (block != nullptr) watermark_ns_ = block->head().watermark_ns;
  while (block != nullptr && !block->at_end()) {
    std::shared_ptr<Batch> batch = Fill(block, &reader_->mutable_stats());
    FinishBatch(batch.get());
    if (batch->rows() != 0) return batch;
  }
  return nullptr;
}

Result<std::shared_ptr<Batch>> ParallelColumns::NextOfRest() {
  std::shared_ptr<Batch> batch = Fill(rest_.block.get(), &rest_.context->stats);
  FinishBatch(batch.get());
  if (rest_.block->at_end()) {
    const std::lock_guard lock(mutex_);
    reader_->mutable_stats().AddBlocks(rest_.context->stats);
    rest_ = {};
  }
  if (batch->rows() != 0) return batch;
  return Next();
}

}  // namespace tracefs::reader
