#include "tracefs/format/trace_reader.h"

#include <utility>
#include <vector>

namespace tracefs::format {

TraceReader::TraceReader(std::unique_ptr<ByteSource> source,
                         TraceReaderOptions options)
    : make_decoder_(std::move(options.decoder)),
      frames_(std::move(source), options.follow, &context_.stats,
              &context_.report) {
  context_.name = std::move(options.name);
  context_.report = std::move(options.report);
  context_.aggregate = std::move(options.aggregate);
  context_.alarm = std::move(options.alarm);
  context_.process = std::move(options.process);
}

Result<ReadStep> TraceReader::ReadPreamble() {
  if (decoder_ != nullptr) return ReadStep::kItem;
  const Result<ReadStep> step = frames_.ReadPreamble();
  if (!step.ok() || *step != ReadStep::kItem) return step;
  auto decoder = make_decoder_(frames_.preamble());
  if (!decoder.ok()) {
    // In a damaged preamble the chain text is only a guess.
    if (context_.stats.preamble_damaged) decoder = MakePlainDecoder({});
    if (!decoder.ok()) return decoder.status();
  }
  decoder_ = *std::move(decoder);
  return ReadStep::kItem;
}

void TraceReader::Stop() {
  stopped_ = true;
  frames_.Stop();
}

Result<ReadStep> TraceReader::AtEnd() {
  ReadStats& stats = context_.stats;
  if (stats.ended) return ReadStep::kEnd;
  stats.ended = !stopped_ || final_seen_;
  if (first_block_ && !stats.no_header && !stopped_) {
    stats.no_header = true;
    context_.Tell({.kind = ReportKind::kNoHeader});
  }
  if (stats.ended && stats.goes_on != 0) {
    context_.Tell({.kind = ReportKind::kGoesOn, .number = stats.goes_on});
  } else if (stats.ended && !stats.final_record && !stats.snapshot &&
             frames_.WriterLives()) {
    context_.Tell({.kind = ReportKind::kUnfinished, .offset = stats.bytes});
  } else if (stats.ended && !stats.final_record && !stats.snapshot &&
             stats.cut_bytes == 0) {
    context_.Tell({.kind = ReportKind::kNoFinal, .offset = stats.bytes});
  }
  return ReadStep::kEnd;
}

Result<ReadStep> TraceReader::NextBlock(std::unique_ptr<BlockDecoder>* block) {
  const Result<ReadStep> ready = ReadPreamble();
  if (!ready.ok() || *ready != ReadStep::kItem) return ready;
  for (;;) {
    Frame frame;
    const Result<ReadStep> step = frames_.Next(&frame);
    if (!step.ok() || *step == ReadStep::kWait) return step;
    if (*step == ReadStep::kEnd) return AtEnd();
    if (std::exchange(first_block_, false) && frame.header.sequence != 0) {
      context_.stats.no_header = true;
      context_.Tell({.kind = ReportKind::kNoHeader});
    }
    if (frame.header.kind != static_cast<uint16_t>(FrameKind::kMessages)) {
      ++context_.stats.unknown_frames;
      context_.Tell({.kind = ReportKind::kUnknownFrame,
                     .offset = frame.offset,
                     .number = frame.header.kind});
      continue;
    }
    std::vector<std::byte> messages;
    const Status decoded =
        decoder_->Decode(frame.header, frame.payload, &messages);
    if (!decoded.ok()) {
      ++context_.stats.undecodable_blocks;
      context_.Tell({.kind = ReportKind::kUndecodable,
                     .offset = frame.offset,
                     .number = frame.header.sequence,
                     .detail = decoded.message()});
      continue;
    }
    auto opened = std::make_unique<BlockDecoder>(&context_);
    if (!opened->Open(std::move(messages), frame.header.sequence,
                      frame.offset)) {
      continue;
    }
    ++context_.stats.blocks;
    if (opened->has_final()) {
      final_seen_ = true;
      frames_.Stop();  // nothing follows
    }
    *block = std::move(opened);
    return ReadStep::kItem;
  }
}

}  // namespace tracefs::format
