// Reader: what the C interface calls; tracefs_reader.h says what each does. Any
// of it may throw bad_alloc, which the C interface catches.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/reader/columns.h"
#include "tracefs/reader/finding.h"
#include "tracefs/reader/merged_columns.h"
#include "tracefs/reader/parallel_columns.h"
#include "tracefs/reader/reader_options.h"
#include "tracefs/reader/trace_set.h"
#include "tracefs/reader/tracefs_reader.h"
#include "tracefs/reader/watched_source.h"

namespace tracefs::reader {

class Reader {
 public:
  // What a call came to: TRACEFS_ITEM, ….
  using Code = int;

  explicit Reader(const ReaderOptions& options);

  Code status() const { return code_; }
  const std::string& message() const { return message_; }
  // Reading ends with that error, if it has not ended with another one.
  Code Fail(const Status& status);
  Code FailCode(Code code, std::string message);
  FindingCounts Counts() const;
  bool Complete() const;

  void Cancel() { watch_.cancelled.store(true); }
  void Progress(uint64_t* done, uint64_t* total) const {
    *done = watch_.done_bytes.load(std::memory_order_relaxed);
    *total = total_bytes_;
  }
  void Stop() { traces_.Stop(); }

  size_t size() const { return traces_.size(); }
  const format::TraceReader& trace(size_t i) const { return traces_.trace(i); }
  // Reads what a trace says of itself.
  Code ReadHeader(size_t trace);
  Code TimeSpan(uint64_t* first, uint64_t* last);
  Code SeekTime(uint64_t real_ns);
  Code SeekBlock(size_t trace, uint64_t sequence);

  Code NextEvent(const format::Record** record, size_t* trace);

  // The next process record; its views hold until the next call.
  Code NextProcess(const ProcessRecord** record, size_t* trace);

  // The next message, and the block it is in.
  Code NextMessage(format::Message* message);
  const format::BlockDecoder& message_block() const { return *block_; }
  size_t message_trace() const { return at_trace_; }

  Code NextBlock(tracefs_block* block);

  // The next batch of rows; TRACEFS_END after the last.
  Code NextBatch(const Batch::Specs& specs, std::shared_ptr<Batch>* batch);

  const TextHook& on_text() const { return options_.on_text; }

 private:
  enum class Way : uint8_t {
    kNone,
    kEvents,
    kProcesses,
    kMessages,
    kBlocks,
    kColumns
  };

  void Open();
  void Found(size_t trace, const format::Report& report);
  // TRACEFS_ITEM if the reader is read in that way, or none yet.
  Code Begin(Way way);
  Code ReadHead(size_t trace);
  void GiveHeads();
  Code End();
  // What a trace's status, or what was found meanwhile, makes of reading.
  Code Check();
  // Goes to the block whose messages come first.
  Code BeginMessages();
  // Whether messages of block_ are asked for.
  bool IsInRange() const;
  Code NextByTime(const Batch::Specs& specs, std::shared_ptr<Batch>* batch);
  Code NextByBlock(const Batch::Specs& specs, std::shared_ptr<Batch>* batch);
  // By time, too, of blocks that threads decode.
  Code NextMerged(std::shared_ptr<Batch>* batch);
  Code BeginMerged(const Batch::Specs& specs);
  unsigned Threads() const;
  std::unique_ptr<ParallelColumns> MakeColumns(size_t trace,
                                               const Batch::Specs& specs,
                                               unsigned threads, bool to_merge);

  const ReaderOptions options_;
  Watch watch_;
  uint64_t total_bytes_ = 0;
  Code code_ = TRACEFS_ITEM;
  std::string message_;
  Status strict_;  // what a strict kind ends reading with
  Way way_ = Way::kNone;
  TraceSet traces_;
  format::Record record_;
  std::optional<ProcessRecord> process_;  // that came last
  size_t process_trace_ = 0;

  // First blocks that were read for their headers and nothing else yet.
  std::vector<std::unique_ptr<format::BlockDecoder>> heads_;
  std::vector<bool> head_read_;
  std::vector<bool> sought_;  // SeekBlock has set where to go on
  size_t at_trace_ = 0;       // of messages, blocks and columns in file order
  std::unique_ptr<format::BlockDecoder> block_;
  std::optional<format::MessageCursor> messages_;
  bool messages_begun_ = false;  // of this trace
  bool preamble_told_ = false;
  std::unique_ptr<ParallelColumns> columns_;
  std::unique_ptr<MergedColumns> merged_;
};

}  // namespace tracefs::reader
