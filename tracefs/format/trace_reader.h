// TraceReader: one trace, block by block, from any input. TraceMerger puts the
// operations of several in order of time.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "tracefs/base/status.h"
#include "tracefs/format/block_decoder.h"
#include "tracefs/format/byte_source.h"
#include "tracefs/format/frame_reader.h"
#include "tracefs/format/payload_decoder.h"
#include "tracefs/format/record.h"
#include "tracefs/format/time_seek.h"

namespace tracefs::format {

struct TraceReaderOptions {
  std::string name;     // of the input, for messages
  bool follow = false;  // wait at the end of a growing input
  ReportSink report;    // may be empty
  PayloadDecoderFactory decoder = MakePlainDecoder;
  AggregateSink aggregate = nullptr;  // gets what was counted; may be empty
  AlarmSink alarm = nullptr;          // gets alarms of rules; may be empty
  StateSink state = nullptr;          // gets states of files; may be empty
  EmbeddedFileSink file = nullptr;    // gets embedded files; may be empty
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

  // The same undecoded: the next block as the output chain made it, valid until
  // the next call. For who decodes blocks in several threads, or not at all;
  // block 0 has to go through NextBlock.
  Result<ReadStep> NextPayload(Frame* frame);
  // Tells what is to be told at the end: when NextPayload has come to it, and
  // what was read was added to the stats. NextBlock does so itself.
  void Finish();
  // What undoes the chain: one more, for another thread. After ReadPreamble.
  Result<std::unique_ptr<PayloadDecoder>> MakeDecoder() const;

  // Whether SeekTime and TimeSpan find anything: the input can be read
  // anywhere.
  bool CanSeek() { return frames_.source().Size().has_value(); }
  // Goes on where all operations that began at `real_ns` (since the epoch) or
  // later are still to come; earlier ones may come, too (time_seek.h). After
  // the first block, once; what is passed over is not told of. Does nothing
  // where CanSeek does not hold.
  Status SeekTime(uint64_t real_ns);
  // Goes on with the block that has that sequence number, or the one after it.
  Status SeekBlock(uint64_t sequence);
  // When the first operation and the last one began (time_seek.h). Nothing if
  // there is none, or CanSeek does not hold.
  using Span = BlockSpan;
  Result<std::optional<Span>> TimeSpan();

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
  FrameReader& frames() { return frames_; }
  const TraceContext& context() const { return context_; }
  TraceContext& mutable_context() { return context_; }

 private:
  TraceContext context_;
  const PayloadDecoderFactory make_decoder_;
  FrameReader frames_;
  std::unique_ptr<PayloadDecoder> decoder_;  // once the preamble was read
  bool first_block_ = true;
  bool final_seen_ = false;
  bool stopped_ = false;
};

}  // namespace tracefs::format
