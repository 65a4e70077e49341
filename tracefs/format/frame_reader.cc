#include "tracefs/format/frame_reader.h"

#include <string.h>

#include <algorithm>
#include <utility>

#include "tracefs/base/crc32c.h"
#include "tracefs/format/marks.h"

namespace tracefs::format {
namespace {

constexpr size_t kReadBytes = size_t{256} << 10;

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
    : source_(std::move(source)),
      follow_(follow),
      stats_(stats),
      report_(report) {}

Result<bool> FrameReader::Fill(size_t n) {
  while (available() < n) {
    if (source_ended_ && !follow_) return false;
    if (end_ == buffer_.size()) {
      if (begin_ != 0 && begin_ >= available()) {
        // Moves no more than was consumed since the last move.
        std::memmove(buffer_.data(), buffer_.data() + begin_, available());
        end_ -= begin_;
        begin_ = 0;
      } else {
        // By what is really there, not by what a header claims.
        buffer_.resize(std::max(kReadBytes, 2 * buffer_.size()));
      }
    }
    const Result<size_t> got =
        source_->Read(std::span<std::byte>(buffer_).subspan(end_));
    if (!got.ok()) return got.status();
    if (*got == 0) {
      source_ended_ = true;
      if (follow_ && !source_->MayGrow()) follow_ = false;
      return false;
    }
    source_ended_ = false;
    end_ += *got;
    stats_->bytes += *got;
  }
  return true;
}

void FrameReader::Consume(size_t n) {
  if (damage_offset_) window_crc_.Advance(offset_ + n, window());
  begin_ += n;
  offset_ += n;
}

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
  const Result<bool> head = Fill(kPreambleMagic.size() + 4);
  if (!head.ok()) return head.status();
  if (!*head) {
    if (follow_) return ReadStep::kWait;
    if (available() == 0) return Status::Corrupt("the trace is empty");
    if (AsText(window()).substr(0, kPreambleMagic.size()) !=
        kPreambleMagic.substr(0, available())) {
      return PreambleLength(window()).status();
    }
    return Status::Corrupt("the trace is cut within its preamble");
  }
  const Result<size_t> length = PreambleLength(window());
  if (!length.ok()) return PreambleDamaged(length.status());
  const Result<bool> whole = Fill(*length);
  if (!whole.ok()) return whole.status();
  if (!*whole) {
    if (follow_) return ReadStep::kWait;
    return PreambleDamaged(
        Status::Corrupt("the trace is cut within its preamble"));
  }
  Result<Preamble> preamble = DecodePreamble(window().first(*length));
  if (!preamble.ok()) {
    if (preamble.status().code() == StatusCode::kInvalid) {
      return preamble.status();
    }
    return PreambleDamaged(preamble.status());
  }
  preamble_ = *std::move(preamble);
  serial_known_ = true;
  Consume(*length);
  return ReadStep::kItem;
}

Result<ReadStep> FrameReader::PreambleDamaged(Status why) {
  preamble_error_ = std::move(why);
  const ByteSpan start = window();
  preamble_has_magic_ =
      AsText(start.first(kPreambleMagic.size())) == kPreambleMagic;
  if (start.size() >= kPreambleFixedBytes) {
    // A guess, which a decoder may refuse.
    const size_t size = LoadLe<uint16_t>(start.data() + 32);
    if (size <= start.size() - kPreambleFixedBytes) {
      preamble_.chain = AsText(start.subspan(kPreambleFixedBytes, size));
    }
  }
  StartDamage(Check::kBad);
  damage_reason_ = "the preamble";
  return SavePreamble();
}

Result<ReadStep> FrameReader::SavePreamble() {
  // The serial comes from the first frame whose CRC is right. Without even the
  // magic this may be any file: a frame must then follow where a preamble would
  // have ended.
  for (;;) {
    if (!preamble_has_magic_ && offset_ > kMaxPreambleBytes) {
      return preamble_error_;
    }
    const Result<bool> head = Fill(kFrameHeaderBytes);
    if (!head.ok()) return head.status();
    if (!*head) {
      if (follow_) return ReadStep::kWait;
      return preamble_error_;
    }
    FrameHeader header;
    const Result<Check> check = CheckFrame(&header);
    if (!check.ok()) return check.status();
    if (*check == Check::kGood) {
      preamble_.serial = header.serial;
      break;
    }
    if (*check == Check::kIncomplete && follow_) return ReadStep::kWait;
    SkipToCandidate();
  }
  serial_known_ = true;
  stats_->preamble_damaged = true;
  preamble_error_ = Status::Ok();
  return ReadStep::kItem;
}

Result<FrameReader::Check> FrameReader::CheckFrame(FrameHeader* header) {
  const auto head = window().first<kFrameHeaderBytes>();
  if (!DecodeFrameHeader(head, header)) {
    bad_reason_ =
        std::memcmp(head.data(), kFrameMagic.data(), kFrameMagic.size()) == 0
            ? "a block of impossible length"
            : "no block starts there";
    return Check::kBad;
  }
  if (serial_known_ && header->serial != preamble_.serial) {
    bad_reason_ = "a block of another trace";
    return Check::kBad;
  }
  const size_t size = kFrameHeaderBytes + header->payload_bytes;
  const Result<bool> whole = Fill(size);
  if (!whole.ok()) return whole.status();
  if (!*whole) return Check::kIncomplete;
  const ByteSpan frame = window().first(size);
  const auto header_bytes = frame.first<kFrameHeaderBytes>();
  uint32_t crc;
  if (damage_offset_) {
    // There may be many candidates, each with a long claim.
    crc = CrcOfBoth(
        FrameCrc(header_bytes, {}),
        window_crc_.Of(offset_ + kFrameHeaderBytes, offset_ + size, window()),
        header->payload_bytes);
  } else {
    crc = FrameCrc(header_bytes, frame.subspan(kFrameHeaderBytes));
  }
  if (crc == header->crc) return Check::kGood;
  bad_reason_ = "the CRC of the block there is wrong";
  return Check::kBad;
}

void FrameReader::StartDamage(Check check) {
  if (damage_offset_) return;
  window_crc_.Start(offset_);
  damage_offset_ = offset_;
  damage_is_cut_ = check == Check::kIncomplete;
  damage_reason_ =
      damage_is_cut_ ? "the block there is longer than the rest" : bad_reason_;
}

void FrameReader::SkipToCandidate() {
  const ByteSpan rest = window().subspan(1);
  const void* found = ::memmem(rest.data(), rest.size(), kFrameMagic.data(),
                               kFrameMagic.size());
  if (found != nullptr) {
    Consume(static_cast<size_t>(static_cast<const std::byte*>(found) -
                                window().data()));
    return;
  }
  // The last bytes may be the start of a magic.
  const size_t keep = std::min(rest.size(), kFrameMagic.size() - 1);
  Consume(available() - keep);
}

void FrameReader::ReportDamage() {
  if (!damage_offset_) return;
  const uint64_t begin = *damage_offset_;
  const uint64_t size = offset_ - begin;
  damage_offset_.reset();
  if (size == 0) return;
  ++stats_->damaged_ranges;
  stats_->damaged_bytes += size;
  Tell(ReportKind::kDamaged, begin, 0, size, damage_reason_);
}

void FrameReader::NoteMark(const FrameHeader& header, ByteSpan payload) {
  if (header.kind == static_cast<uint16_t>(FrameKind::kSnapshot)) {
    // Before all blocks, or it is none.
    if (any_sequence_ || stats_->snapshot) return;
    stats_->snapshot = DecodeSnapshotMark(payload);
    if (!stats_->snapshot) return;
    Tell(ReportKind::kSnapshot, offset_, stats_->snapshot->events,
         stats_->snapshot->overwritten_events, stats_->snapshot->reason);
    return;
  }
  const std::optional<PartMark> mark = DecodePartMark(payload);
  if (!mark) return;
  if (header.kind == static_cast<uint16_t>(FrameKind::kPartEnd)) {
    stats_->goes_on = mark->part + 1;
    return;
  }
  stats_->goes_on = 0;
  head_copy_may_follow_ = true;
  if (any_sequence_ || mark->part == 0) return;
  elsewhere_below_ = mark->block;
  stats_->first_part = mark->part;
  Tell(ReportKind::kPart, offset_, mark->part, mark->block);
}

Result<bool> FrameReader::TakeBetweenFrames(bool* ended) {
  // Files that follow each other in the input, each with its preamble.
  if (AsText(window().first(kPreambleMagic.size())) == kPreambleMagic) {
    const Result<size_t> length = PreambleLength(window());
    if (!length.ok()) return false;
    const Result<bool> whole = Fill(*length);
    if (!whole.ok()) return whole.status();
    if (!*whole) return false;
    const Result<Preamble> another = DecodePreamble(window().first(*length));
    if (!another.ok() || another->serial != preamble_.serial ||
        another->chain != preamble_.chain) {
      return false;
    }
    Consume(*length);
    return true;
  }
  if (!EndsInDevice(preamble_.chain)) return false;
  const auto head = window().first<kFrameHeaderBytes>();
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
  uint64_t expected = any_sequence_ ? last_sequence_ + 1 : 0;
  if (expected != 0 && expected < elsewhere_below_) {
    expected = std::min(elsewhere_below_, header.sequence);
  }
  if (any_sequence_ && header.sequence <= last_sequence_) {
    ++stats_->duplicate_blocks;
    Tell(ReportKind::kDuplicate, offset_, header.sequence, 1);
    return false;
  }
  if (header.sequence != expected && !stats_->snapshot) {
    const uint64_t missing = header.sequence - expected;
    const uint64_t sum = stats_->missing_blocks + missing;
    stats_->missing_blocks = sum < missing ? UINT64_MAX : sum;
    Tell(ReportKind::kGap, offset_, expected, missing);
  }
  any_sequence_ = true;
  last_sequence_ = header.sequence;
  return true;
}

void FrameReader::Stop() {
  follow_ = false;
  source_ended_ = false;  // it may have grown since
}

void FrameReader::ReleaseMemory() {
  Consume(std::exchange(frame_bytes_, 0));
  if (available() != 0) return;
  buffer_ = {};
  begin_ = end_ = 0;
}

Result<ReadStep> FrameReader::Next(Frame* frame) {
  Consume(std::exchange(frame_bytes_, 0));
  for (;;) {
    const Result<bool> head = Fill(kFrameHeaderBytes);
    if (!head.ok()) return head.status();
    FrameHeader header;
    Check check = Check::kIncomplete;
    if (*head) {
      const Result<Check> checked = CheckFrame(&header);
      if (!checked.ok()) return checked.status();
      check = *checked;
    }
    // A part that has its end grows no more.
    if (check == Check::kIncomplete && follow_ && stats_->goes_on == 0) {
      return ReadStep::kWait;
    }
    if (check == Check::kGood) {
      ReportDamage();
      frame_bytes_ = kFrameHeaderBytes + header.payload_bytes;
      const bool mark = !any_order_ && IsMark(header.kind);
      if (mark) {
        NoteMark(header,
                 window().subspan(kFrameHeaderBytes, header.payload_bytes));
      }
      if (mark || !AcceptSequence(header)) {
        Consume(std::exchange(frame_bytes_, 0));
        continue;
      }
      frame->header = header;
      frame->offset = offset_;
      frame->payload =
          window().subspan(kFrameHeaderBytes, header.payload_bytes);
      return ReadStep::kItem;
    }
    if (available() == 0) break;
    if (*head && check == Check::kBad && !damage_offset_) {
      bool ended = false;
      const Result<bool> taken = TakeBetweenFrames(&ended);
      if (!taken.ok()) return taken.status();
      if (ended) break;
      if (*taken) continue;
    }
    if (!*head && AsText(window()).substr(0, kFrameMagic.size()) !=
                      AsText(std::as_bytes(std::span(kFrameMagic)))
                          .substr(0, available())) {
      bad_reason_ = "no block starts there";
      check = Check::kBad;
    }
    StartDamage(check);
    if (available() < kFrameHeaderBytes) {
      Consume(available());
      break;
    }
    SkipToCandidate();
  }
  if (damage_offset_ && damage_is_cut_) {
    const uint64_t begin = *damage_offset_;
    damage_offset_.reset();
    stats_->cut_bytes += offset_ - begin;
    Tell(ReportKind::kCut, begin, 0, offset_ - begin);
  }
  ReportDamage();
  if (stats_->snapshot && !std::exchange(end_told_, true)) {
    // Its blocks have gaps; their sum has not.
    const uint64_t promised = stats_->snapshot->blocks + 1;
    if (accepted_blocks_ < promised) {
      const uint64_t missing = promised - accepted_blocks_;
      stats_->missing_blocks += missing;
      Tell(ReportKind::kGap, offset_, last_sequence_ + 1, missing);
    }
  }
  return ReadStep::kEnd;
}

}  // namespace tracefs::format
