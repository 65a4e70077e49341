#include "tracefs/format/frame_reader.h"

#include <algorithm>
#include <utility>

#include "tracefs/format/marks.h"

namespace tracefs::format {
namespace {

// The driver at the end of a chain text is `device`: zeros end the trace.
bool EndsInDevice(std::string_view chain) {
  constexpr std::string_view kDevice = "device";
  if (chain.size() < kDevice.size() ||
      chain.substr(chain.size() - kDevice.size()) != kDevice) {
    return false;
  }
  chain.remove_suffix(kDevice.size());
  return chain.empty() || chain.back() == ' ' || chain.back() == ';';
}

}  // namespace

FrameReader::FrameReader(std::unique_ptr<ByteSource> source, bool follow,
                         ReadStats* stats, const ReportSink* report)
    : stats_(stats),
      report_(report),
      walk_(std::move(source), follow, &stats->bytes) {}

void FrameReader::Tell(ReportKind kind, uint64_t offset, uint64_t number,
                       uint64_t count, std::string_view detail) const {
  if (!*report_) return;
  (*report_)({.kind = kind,
              .offset = offset,
              .number = number,
              .count = count,
              .detail = detail});
}

Result<ReadStep> FrameReader::ReadPreamble() {
  if (!preamble_error_.ok()) return SavePreamble();
  const Result<bool> head = walk_.Fill(kPreambleMagic.size() + 4);
  if (!head.ok()) return head.status();
  if (!*head) {
    if (walk_.follow()) return ReadStep::kWait;
    if (walk_.window().empty()) return Status::Corrupt("the trace is empty");
    if (AsText(walk_.window()).substr(0, kPreambleMagic.size()) !=
        kPreambleMagic.substr(0, walk_.window().size())) {
      return PreambleLength(walk_.window()).status();
    }
    return Status::Corrupt("the trace is cut within its preamble");
  }
  const Result<size_t> length = PreambleLength(walk_.window());
  if (!length.ok()) return PreambleDamaged(length.status());
  const Result<bool> whole = walk_.Fill(*length);
  if (!whole.ok()) return whole.status();
  if (!*whole) {
    if (walk_.follow()) return ReadStep::kWait;
    return PreambleDamaged(
        Status::Corrupt("the trace is cut within its preamble"));
  }
  Result<Preamble> preamble = DecodePreamble(walk_.window().first(*length));
  if (!preamble.ok()) {
    if (preamble.status().code() == StatusCode::kInvalid) {
      return preamble.status();
    }
    return PreambleDamaged(preamble.status());
  }
  preamble_ = *std::move(preamble);
  const ByteSpan bytes = walk_.window().first(*length);
  preamble_bytes_.assign(bytes.begin(), bytes.end());
  walk_.SetSerial(preamble_.serial);
  walk_.Consume(*length);
  return ReadStep::kItem;
}

Result<ReadStep> FrameReader::PreambleDamaged(Status why) {
  preamble_error_ = std::move(why);
  const ByteSpan start = walk_.window();
  preamble_has_magic_ =
      AsText(start.first(kPreambleMagic.size())) == kPreambleMagic;
  if (start.size() >= kPreambleFixedBytes) {
    // A guess, which a decoder may refuse.
    const size_t size = LoadLe<uint16_t>(start.data() + 32);
    if (size <= start.size() - kPreambleFixedBytes) {
      preamble_.chain = AsText(start.subspan(kPreambleFixedBytes, size));
    }
  }
  walk_.BeginDamage(FrameWalk::Find::kNone, "the preamble");
  return SavePreamble();
}

Result<ReadStep> FrameReader::SavePreamble() {
  // The serial comes from the first frame whose CRC is right. Without even the
  // magic this may be any file: a frame must then follow where a preamble would
  // have ended.
  for (;;) {
    if (!preamble_has_magic_ && walk_.offset() > kMaxPreambleBytes) {
      return preamble_error_;
    }
    FrameHeader header;
    const Result<FrameWalk::Find> found = walk_.Look(&header);
    if (!found.ok()) return found.status();
    if (*found == FrameWalk::Find::kFrame) {
      preamble_.serial = header.serial;
      break;
    }
    if (*found == FrameWalk::Find::kCut && walk_.follow()) {
      return ReadStep::kWait;
    }
    if (walk_.window().size() < kFrameHeaderBytes) return preamble_error_;
    walk_.Skip(*found);
  }
  walk_.SetSerial(preamble_.serial);
  stats_->preamble_damaged = true;
  preamble_error_ = Status::Ok();
  return ReadStep::kItem;
}

void FrameReader::ReportDamage(bool at_end) {
  const std::optional<FrameWalk::Damage> damage = walk_.TakeDamage();
  if (!damage) return;
  if (at_end && damage->cut) {
    stats_->cut_bytes += damage->bytes;
    Tell(ReportKind::kCut, damage->offset, 0, damage->bytes);
    return;
  }
  ++stats_->damaged_ranges;
  stats_->damaged_bytes += damage->bytes;
  Tell(ReportKind::kDamaged, damage->offset, 0, damage->bytes, damage->why);
}

void FrameReader::NoteMark(const FrameHeader& header, ByteSpan payload) {
  if (header.kind == static_cast<uint16_t>(FrameKind::kSnapshot)) {
    // Before all blocks, or it is none.
    if (any_sequence_ || stats_->snapshot) return;
    stats_->snapshot = DecodeSnapshotMark(payload);
    if (!stats_->snapshot) return;
    Tell(ReportKind::kSnapshot, walk_.offset(), stats_->snapshot->events,
         stats_->snapshot->overwritten_events, stats_->snapshot->reason);
    return;
  }
  const std::optional<PartMark> mark = DecodePartMark(payload);
  if (!mark) return;
  const auto kind = static_cast<FrameKind>(header.kind);
  walk_.source().Marked(kind, preamble_.serial, *mark);
  if (kind == FrameKind::kPartEnd) {
    stats_->goes_on = mark->part + 1;
    return;
  }
  stats_->goes_on = 0;
  head_copy_may_follow_ = true;
  if (any_sequence_ && part_ < UINT64_MAX && mark->part > part_ + 1) {
    gone_ = mark->part == part_ + 2
                ? "part " + std::to_string(part_ + 1) + " is not there"
                : "parts " + std::to_string(part_ + 1) + " to " +
                      std::to_string(mark->part - 1) + " are not there";
  }
  part_ = mark->part;
  if (any_sequence_ || mark->part == 0) return;
  elsewhere_below_ = mark->block;
  stats_->first_part = mark->part;
  Tell(ReportKind::kPart, walk_.offset(), mark->part, mark->block);
}

Result<bool> FrameReader::TakeBetweenFrames(bool* ended) {
  // Files that follow each other in the input, each with its preamble.
  if (AsText(walk_.window().first(kPreambleMagic.size())) == kPreambleMagic) {
    const Result<size_t> length = PreambleLength(walk_.window());
    if (!length.ok()) return false;
    const Result<bool> whole = walk_.Fill(*length);
    if (!whole.ok()) return whole.status();
    if (!*whole) return false;
    const Result<Preamble> another =
        DecodePreamble(walk_.window().first(*length));
    if (!another.ok() || another->serial != preamble_.serial ||
        another->chain != preamble_.chain) {
      return false;
    }
    walk_.Consume(*length);
    return true;
  }
  if (!EndsInDevice(preamble_.chain)) return false;
  const auto head = walk_.window().first<kFrameHeaderBytes>();
  if (!std::all_of(head.begin(), head.end(),
                   [](std::byte b) { return b == std::byte{0}; })) {
    return false;
  }
  *ended = true;
  return true;
}

bool FrameReader::AcceptSequence(const FrameHeader& header) {
  if (any_order_) return true;
  if (std::exchange(head_copy_may_follow_, false) && any_sequence_ &&
      header.sequence == 0) {
    return false;
  }
  if (header.kind == static_cast<uint16_t>(FrameKind::kMessages)) {
    ++accepted_blocks_;
  }
  stats_->goes_on = 0;
  if (std::exchange(jumped_, false)) {
    any_sequence_ = true;
    last_sequence_ = header.sequence;
    return true;
  }
  const auto miss = [&](uint64_t from, uint64_t missing) {
    const uint64_t sum = stats_->missing_blocks + missing;
    stats_->missing_blocks = sum < missing ? UINT64_MAX : sum;
    Tell(ReportKind::kGap, walk_.offset(), from, missing,
         std::exchange(gone_, {}));
  };
  uint64_t expected = any_sequence_ ? last_sequence_ + 1 : 0;
  if (!any_sequence_ && elsewhere_below_ != 0 && header.sequence != 0) {
    // Of what comes before this part it lacks its copy of block 0 alone.
    miss(0, 1);
    expected = 1;
  }
  if (expected != 0 && expected < elsewhere_below_) {
    expected = std::min(elsewhere_below_, header.sequence);
  }
  if (any_sequence_ && header.sequence <= last_sequence_) {
    ++stats_->duplicate_blocks;
    Tell(ReportKind::kDuplicate, walk_.offset(), header.sequence, 1);
    return false;
  }
  if (header.sequence != expected && !stats_->snapshot) {
    miss(expected, header.sequence - expected);
  }
  any_sequence_ = true;
  last_sequence_ = header.sequence;
  return true;
}

Status FrameReader::Jump(uint64_t offset) {
  if (Status s = walk_.Jump(offset); !s.ok()) return s;
  frame_bytes_ = 0;
  jumped_ = true;
  stats_->jumped = true;
  stats_->goes_on = 0;
  return Status::Ok();
}

void FrameReader::ReleaseMemory() {
  walk_.Consume(std::exchange(frame_bytes_, 0));
  walk_.ReleaseMemory();
}

Result<ReadStep> FrameReader::Next(Frame* frame) {
  walk_.Consume(std::exchange(frame_bytes_, 0));
  for (;;) {
    FrameHeader header;
    const Result<FrameWalk::Find> found = walk_.Look(&header);
    if (!found.ok()) return found.status();
    // A part that has its end grows no more.
    if (*found == FrameWalk::Find::kCut && walk_.follow() &&
        (stats_->goes_on == 0 || walk_.source().AwaitsPart())) {
      return ReadStep::kWait;
    }
    if (*found == FrameWalk::Find::kFrame) {
      ReportDamage();
      const ByteSpan payload =
          walk_.window().subspan(kFrameHeaderBytes, header.payload_bytes);
      frame_bytes_ = kFrameHeaderBytes + payload.size();
      const bool mark = !any_order_ && IsMark(header.kind);
      if (mark) NoteMark(header, payload);
      if (mark || !AcceptSequence(header)) {
        walk_.Consume(std::exchange(frame_bytes_, 0));
        continue;
      }
      *frame = {header, walk_.offset(), payload};
      return ReadStep::kItem;
    }
    if (walk_.window().empty()) break;
    if (*found == FrameWalk::Find::kNone && !walk_.in_damage()) {
      bool ended = false;
      const Result<bool> taken = TakeBetweenFrames(&ended);
      if (!taken.ok()) return taken.status();
      if (ended) break;
      if (*taken) continue;
    }
    if (!walk_.Skip(*found)) break;
  }
  ReportDamage(/*at_end=*/true);
  if (stats_->snapshot && !stats_->jumped && !std::exchange(end_told_, true)) {
    // Its blocks have gaps; their sum has not.
    const uint64_t promised = stats_->snapshot->blocks + 1;
    if (accepted_blocks_ < promised) {
      const uint64_t missing = promised - accepted_blocks_;
      stats_->missing_blocks += missing;
      Tell(ReportKind::kGap, walk_.offset(), last_sequence_ + 1, missing);
    }
  }
  return ReadStep::kEnd;
}

}  // namespace tracefs::format
