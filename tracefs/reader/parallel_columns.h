// ParallelColumns: the blocks of one trace as batches of columns, decoded by
// several threads, in the order in which they stand in the input.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/format/trace_reader.h"
#include "tracefs/reader/columns.h"
#include "tracefs/reader/event_filter.h"

namespace tracefs::reader {

// Used by one thread; its own ones run from Start until it is gone, and block
// all signals. Reports are told by the thread that calls Next.
class ParallelColumns {
 public:
  struct Options {
    Batch::Specs specs;
    std::shared_ptr<const EventFilter> filter;  // may be null
    TimeWindow range;
    unsigned threads = 1;
    TextHook on_text;  // called by the thread that calls Next
    // Of the trace, read already; may be null.
    std::shared_ptr<format::BlockDecoder> first;
    // Batches are not finished, and have their order.
    bool to_merge = false;
  };

  // Goes on where `reader` stands, behind its first block. The reader, whose
  // number is `trace`, outlives this and is not used otherwise meanwhile.
  ParallelColumns(format::TraceReader* reader, size_t trace, Options options);
  ~ParallelColumns();
  ParallelColumns(const ParallelColumns&) = delete;
  ParallelColumns& operator=(const ParallelColumns&) = delete;

  // The next batch with any rows; null at the end.
  Result<std::shared_ptr<Batch>> Next();
  // No batch that is still to come has a row that began before, by the
  // monotonic clock. Told by the thread that calls Next.
  uint64_t watermark_ns() const;
  // To whom the reader told, before this took it over. The thread as above.
  void Tell(const format::Report& report) const {
    if (tell_) tell_(report);
  }

  // How far in the input the batch that was returned last lies, in bytes.
  uint64_t offset() const { return offset_; }

 private:
  struct KeptReport {
    format::Report report;
    std::string detail;
  };
  // What of a block did not fit into a batch.
  struct Rest {
    std::unique_ptr<format::TraceContext> context;  // of the block
    std::unique_ptr<format::BlockDecoder> block;
  };
  // A block on its way; or the end.
  struct Job {
    format::FrameHeader header;
    uint64_t offset = 0;
    std::vector<std::byte> payload;
    std::vector<KeptReport> reports;
    format::ReadStats stats;
    std::shared_ptr<Batch> batch;
    Rest rest;
    uint64_t watermark_ns = 0;  // monotonic
    uint64_t watermark_real_ns = 0;
    bool end = false;
    Status status;
  };
  // How many blocks are under way for each thread.
  static constexpr uint64_t kAhead = 3;

  Status Start();
  void Work() noexcept;
  void DecodeBlocks();
  // Reads the next block; under mutex_.
  void Read(Job* job);
  // *context: the thread's own; null afterwards if the job has taken it.
  void Decode(Job* job, format::PayloadDecoder* decoder,
              std::unique_ptr<format::TraceContext>* context);
  std::unique_ptr<format::TraceContext> MakeContext() const;
  // Fills a batch from the block, as far as it goes.
  // `stats`: of who accounts for the block.
  std::shared_ptr<Batch> Fill(format::BlockDecoder* block,
                              format::ReadStats* stats) const;
  Result<std::shared_ptr<Batch>> NextOfRest();
  // From a block that was read before; null at its end.
  std::shared_ptr<Batch> NextOfFirst();
  // What of a block was taken, but not handed out; may be null.
  const format::BlockDecoder* Pending() const;
  // Unless it is to be merged.
  void FinishBatch(Batch* batch) const;
  // Adds what a job found to what the reader knows.
  void Account(Job* job);
  static format::ReportSink KeepIn(std::vector<KeptReport>* reports);

  format::TraceReader* const reader_;
  const size_t trace_;
  uint64_t offset_ = 0;
  const Options options_;
  const format::ReportSink tell_;  // the reader's own

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<KeptReport> found_;  // while frames were read
  uint64_t begun_ = 0;             // jobs
  uint64_t taken_ = 0;
  std::map<uint64_t, Job> done_;
  bool ended_ = false;          // nothing more is to be read
  bool finished_ = false;       // Next has come to the end
  bool out_of_memory_ = false;  // a thread ended for want of it
  Rest rest_;                   // of the batch handed out last
  uint64_t watermark_ns_ = 0;   // of the blocks taken so far
  std::vector<std::thread> threads_;
};

}  // namespace tracefs::reader
