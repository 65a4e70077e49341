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
    TimeRange range;
    unsigned threads = 1;
    TextHook on_text;  // called by the thread that calls Next
    // Of the trace, read already; may be null.
    std::shared_ptr<format::BlockDecoder> first;
  };

  // Goes on where `reader` stands, behind its first block. The reader, whose
  // number is `trace`, outlives this and is not used otherwise meanwhile.
  ParallelColumns(format::TraceReader* reader, size_t trace, Options options);
  ~ParallelColumns();
  ParallelColumns(const ParallelColumns&) = delete;
  ParallelColumns& operator=(const ParallelColumns&) = delete;

  // The next batch with any rows; null at the end.
  Result<std::shared_ptr<Batch>> Next();

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
    uint64_t watermark_ns = 0;  // since the epoch
    bool end = false;
    Status status;
  };
  // How many blocks are under way for each thread.
  static constexpr uint64_t kAhead = 3;

  void Start();
  void Work() noexcept;
  void DecodeBlocks();
  // Reads the next block; under mutex_.
  void Read(Job* job);
  // *context: the thread's own; null afterwards if the job has taken it.
  void Decode(Job* job, format::PayloadDecoder* decoder,
              std::unique_ptr<format::TraceContext>* context);
  std::unique_ptr<format::TraceContext> MakeContext() const;
  // Fills a batch from the block, as far as it goes.
  std::shared_ptr<Batch> Fill(format::BlockDecoder* block) const;
  Result<std::shared_ptr<Batch>> NextOfRest();
  // Of a block that was read before; null at its end.
  std::shared_ptr<Batch> NextOfFirst();
  // Adds what a job found to what the reader knows.
  void Account(Job* job);
  static format::ReportSink KeepIn(std::vector<KeptReport>* reports);

  format::TraceReader* const reader_;
  const size_t trace_;
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
  std::vector<std::thread> threads_;
};

}  // namespace tracefs::reader
