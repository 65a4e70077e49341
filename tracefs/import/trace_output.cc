#include "tracefs/import/trace_output.h"

#include <algorithm>
#include <array>

#include "drivers/assembly/stream.h"
#include "tracefs/crypto/hash.h"
#include "tracefs/event/verbosity.h"
#include "tracefs/format/block_info.h"
#include "tracefs/format/frame.h"
#include "tracefs/pipeline/loss.h"

namespace tracefs::import {
namespace {

// A block holds a write whole, and one of strace may be of megabytes.
constexpr size_t kBlockBytes = size_t{24} << 20;
constexpr size_t kFullBytes = size_t{1} << 20;

}  // namespace

TraceOutput::TraceOutput(Write write, format::TraceHeader header,
                         std::string_view origin)
    : write_(std::move(write)),
      header_(std::move(header)),
      // The values of extended attributes are in traces for replays only.
      stream_(MakeStream(StreamFlagBits("STR_ALL") |
                         StreamFlagBits("STR_REPLAY") | kStrData)),
      builder_(kBlockBytes),
      spare_(std::make_unique<Block>(kBlockBytes)) {
  header_.tracer_id = 1;
  Sha256 hash;
  hash.Update(AsBytes(origin));
  const Digest digest = hash.Finish();
  std::copy_n(digest.begin(), serial_.size(), serial_.begin());
}

Status TraceOutput::WriteFrame(ByteSpan payload) {
  std::array<std::byte, format::kFrameHeaderBytes> head;
  format::EncodeFrameHeader(
      head,
      {.sequence = sequence_++,
       .serial = serial_,
       .kind = static_cast<uint16_t>(format::FrameKind::kMessages)},
      payload);
  if (Status s = write_(head); !s.ok()) return s;
  return write_(payload);
}

Status TraceOutput::Begin() {
  const std::string preamble =
      format::EncodePreamble({.serial = serial_, .chain = "file"});
  if (Status s = write_(AsBytes(preamble)); !s.ok()) return s;
  return WriteFrame(format::EncodeStartBlock(header_));
}

Status TraceOutput::Put(Event& event, uint64_t watermark_ns) {
  watermark_ns_ = std::max(watermark_ns_, watermark_ns);
  for (int attempt = 0; attempt < 2; ++attempt) {
    builder_.Mark();
    if (stream_->Assemble(event, builder_)) {
      builder_.Commit(event);
      ++events_;
      ++by_op_[event.before ? 1 : 0][Index(event.op)];
      return builder_.block().writer.size() < kFullBytes ? Status() : Flush();
    }
    builder_.Rollback();
    if (builder_.block().empty()) break;
    if (Status s = Flush(); !s.ok()) return s;
  }
  ++lost_;
  return {};
}

Status TraceOutput::Flush() {
  if (builder_.block().empty()) return {};
  std::unique_ptr<Block> full = builder_.Take(std::move(spare_));
  format::MessageWriter front({full->memory.get(), format::kBlockInfoBytes});
  format::WriteBlockHead(front, {.tracer_id = header_.tracer_id,
                                 .clock = header_.clock,
                                 .first_ns = full->first_event_ns(),
                                 .last_ns = full->last_event_ns(),
                                 .watermark_ns = watermark_ns_,
                                 .events = full->events});
  const Status status = WriteFrame(full->writer.bytes());
  spare_ = std::move(full);
  return status;
}

Status TraceOutput::End(std::string_view reason) {
  if (Status s = Flush(); !s.ok()) return s;
  Block last(size_t{64} << 10);
  last.Reset();
  format::MessageWriter& out = last.writer;
  format::FinalRecord all;
  all.tracer_id = header_.tracer_id;
  all.clock = header_.clock;
  all.events = events_;
  all.blocks = sequence_ + 1;
  all.end_reason = reason;
  for (size_t phase = 0; phase < by_op_.size(); ++phase) {
    for (size_t op = 0; op < kOpCount; ++op) {
      if (by_op_[phase][op] == 0) continue;
      all.op_totals.push_back(
          {format::OperationMessage(static_cast<Op>(op), phase != 0),
           by_op_[phase][op]});
    }
  }
  if (lost_ != 0) {
    const std::string_view too_large = LossReasonName(LossReason::kTooLarge);
    format::WriteLoss(out, {.reason = too_large,
                            .count = lost_,
                            .first_ns = 0,
                            .last_ns = watermark_ns_});
    all.loss_totals.push_back({std::string(too_large), lost_});
  }
  format::WriteFinal(out, all);
  format::MessageWriter front({last.memory.get(), format::kBlockInfoBytes});
  format::WriteBlockHead(front, {.tracer_id = header_.tracer_id,
                                 .clock = header_.clock,
                                 .watermark_ns = watermark_ns_});
  return WriteFrame(out.bytes());
}

}  // namespace tracefs::import
