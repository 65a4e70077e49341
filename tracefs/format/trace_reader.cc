#include "tracefs/format/trace_reader.h"

#include <algorithm>
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
  context_.state = std::move(options.state);
  context_.file = std::move(options.file);
  context_.process = std::move(options.process);
}

Result<ReadStep> TraceReader::ReadPreamble() {
  if (decoder_ != nullptr) return ReadStep::kItem;
  const Result<ReadStep> step = frames_.ReadPreamble();
  if (!step.ok() || *step != ReadStep::kItem) return step;
  auto decoder = MakeDecoder();
  if (!decoder.ok()) return decoder.status();
  decoder_ = *std::move(decoder);
  return ReadStep::kItem;
}

void TraceReader::Stop() {
  stopped_ = true;
  frames_.Stop();
}

void TraceReader::Finish() {
  ReadStats& stats = context_.stats;
  if (stats.ended) return;
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
}

Result<ReadStep> TraceReader::NextPayload(Frame* frame) {
  const Result<ReadStep> ready = ReadPreamble();
  if (!ready.ok() || *ready != ReadStep::kItem) return ready;
  for (;;) {
    const Result<ReadStep> step = frames_.Next(frame);
    if (!step.ok() || *step == ReadStep::kWait) return step;
    if (*step == ReadStep::kEnd) return step;
    if (std::exchange(first_block_, false) && frame->header.sequence != 0) {
      context_.stats.no_header = true;
      context_.Tell({.kind = ReportKind::kNoHeader});
    }
    if (frame->header.kind == static_cast<uint16_t>(FrameKind::kMessages)) {
      return ReadStep::kItem;
    }
    ++context_.stats.unknown_frames;
    context_.Tell({.kind = ReportKind::kUnknownFrame,
                   .offset = frame->offset,
                   .number = frame->header.kind});
  }
}

Result<std::unique_ptr<PayloadDecoder>> TraceReader::MakeDecoder() const {
  auto decoder = make_decoder_(frames_.preamble());
  // In a damaged preamble the chain text is only a guess.
  if (!decoder.ok() && context_.stats.preamble_damaged) {
    return MakePlainDecoder({});
  }
  return decoder;
}

Status TraceReader::SeekTime(uint64_t real_ns) {
  const std::optional<uint64_t> size = frames_.source().Size();
  if (!size || decoder_ == nullptr) return Status::Ok();
  TimeSeek seek(&frames_.source(), decoder_.get(), preamble().serial);
  const uint64_t begin = frames_.offset();
  const Result<uint64_t> found = seek.Find(real_ns, begin, *size);
  if (!found.ok()) return found.status();
  context_.from_real_ns = real_ns;
  context_.stats.jumped = true;
  return *found == begin ? Status::Ok() : frames_.Jump(*found);
}

Status TraceReader::SeekBlock(uint64_t sequence) {
  const std::optional<uint64_t> size = frames_.source().Size();
  if (!size || decoder_ == nullptr) return Status::Ok();
  TimeSeek seek(&frames_.source(), decoder_.get(), preamble().serial);
  uint64_t begin = frames_.offset();
  uint64_t end = *size;
  const uint64_t from = begin;
  while (begin < end) {
    const uint64_t middle = begin + (end - begin) / 2;
    const Result<std::optional<FoundBlock>> found =
        seek.BlockAfter(middle, end);
    if (!found.ok()) return found.status();
    if (!*found || (*found)->header.sequence >= sequence) {
      end = middle;
    } else {
      begin = (*found)->end;
    }
  }
  return begin == from ? Status::Ok() : frames_.Jump(begin);
}

Result<std::optional<TraceReader::Span>> TraceReader::TimeSpan() {
  const std::optional<uint64_t> size = frames_.source().Size();
  if (!size || decoder_ == nullptr) return std::optional<Span>();
  TimeSeek seek(&frames_.source(), decoder_.get(), preamble().serial);
  return seek.Span(0, *size);
}

Result<ReadStep> TraceReader::NextBlock(std::unique_ptr<BlockDecoder>* block) {
  for (;;) {
    Frame frame;
    const Result<ReadStep> step = NextPayload(&frame);
    if (step.ok() && *step == ReadStep::kEnd) {
      Finish();
      return step;
    }
    if (!step.ok() || *step != ReadStep::kItem) return step;
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
