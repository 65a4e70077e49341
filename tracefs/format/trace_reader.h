// TraceReader: one trace, block by block, from any input. The entry to the
// reading library; TraceMerger puts the operations in order of time.
#pragma once

#include <memory>
#include <string>

#include "tracefs/base/status.h"
#include "tracefs/format/block_decoder.h"
#include "tracefs/format/byte_source.h"
#include "tracefs/format/frame_reader.h"
#include "tracefs/format/payload_decoder.h"
#include "tracefs/format/record.h"

namespace tracefs::format {

struct TraceReaderOptions {
  std::string name;     // of the input, for messages
  bool follow = false;  // wait at the end of a growing input
  ReportSink report;    // may be empty
  PayloadDecoderFactory decoder = MakePlainDecoder;
  AggregateSink aggregate = nullptr;  // gets what was counted; may be empty
  AlarmSink alarm = nullptr;          // gets alarms of rules; may be empty
  // Gets process records, in their order among the operations, while those are
  // asked for; may be empty.
  ProcessRecordSink process = nullptr;
};

// Used by one thread.
class TraceReader {
 public:
  TraceReader(std::unique_ptr<ByteSource> source, TraceReaderOptions options);
  TraceReader(const TraceReader&) = delete;
  TraceReader& operator=(const TraceReader&) = delete;

  // Reads the preamble. An error means that nothing of the trace can be read:
  // it is not a trace, is too new, its output chain is unknown, or the input
  // fails. kWait only with `follow`. NextBlock calls it if need be.
  Result<ReadStep> ReadPreamble();

  // Reads, checks and opens the next block. What cannot be read is reported and
  // skipped; an error is one of the input (I/O), after which nothing follows.
  // The reader outlives its blocks.
  Result<ReadStep> NextBlock(std::unique_ptr<BlockDecoder>* block);

  // The end of the input, as it is now, is the end (--follow interrupted): its
  // lack of a FINAL is then not a fault.
  void Stop();

  // As of FrameReader, between two blocks.
  size_t memory_bytes() const { return frames_.memory_bytes(); }
  void ReleaseMemory() { frames_.ReleaseMemory(); }

  // After ReadPreamble and, for the description, after the first block.
  const Preamble& preamble() const { return frames_.preamble(); }
  const SelfDescription& description() const { return context_.description; }
  const ReadStats& stats() const { return context_.stats; }
  ReadStats& mutable_stats() { return context_.stats; }
  const TraceContext& context() const { return context_; }

 private:
  Result<ReadStep> AtEnd();

  TraceContext context_;
  const PayloadDecoderFactory make_decoder_;
  FrameReader frames_;
  std::unique_ptr<PayloadDecoder> decoder_;  // once the preamble was read
  bool first_block_ = true;
  bool final_seen_ = false;
  bool stopped_ = false;
};

}  // namespace tracefs::format
