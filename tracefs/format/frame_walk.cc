#include "tracefs/format/frame_walk.h"

#include <string.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace tracefs::format {
namespace {

constexpr size_t kReadBytes = size_t{256} << 10;

std::string_view FaultText(FrameFault fault) {
  switch (fault) {
    case FrameFault::kLength:
      return "a block of impossible length";
    case FrameFault::kSerial:
      return "a block of another trace";
    case FrameFault::kCrc:
      return "the CRC of the block there is wrong";
    default:
      return "no block starts there";
  }
}

}  // namespace

Result<bool> FrameWalk::Fill(size_t n) {
  while (end_ - begin_ < n) {
    if (source_ended_ && !follow_) return false;
    if (end_ == buffer_.size()) {
      if (begin_ != 0 && begin_ >= end_ - begin_) {
        // Moves no more than was consumed since the last move.
        std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
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
    *bytes_read_ += *got;
  }
  return true;
}

void FrameWalk::Consume(size_t n) {
  if (damage_) window_crc_.Advance(offset_ + n, window());
  begin_ += n;
  offset_ += n;
}

Status FrameWalk::Jump(uint64_t offset) {
  if (Status s = source_->Seek(offset); !s.ok()) return s;
  begin_ = end_ = 0;
  source_ended_ = false;
  damage_.reset();
  offset_ = *bytes_read_ = offset;
  return Status::Ok();
}

Result<FrameWalk::Find> FrameWalk::Look(FrameHeader* header) {
  Result<bool> there = Fill(kFrameHeaderBytes);
  if (!there.ok()) return there.status();
  if (!*there) return Find::kCut;
  FrameFault fault = check_.Begin(window().first<kFrameHeaderBytes>());
  *header = check_.header();
  if (fault == FrameFault::kNone) {
    there = Fill(kFrameHeaderBytes + check_.left());
    if (!there.ok()) return there.status();
    if (!*there) return Find::kCut;
    if (damage_) {
      // There may be many candidates, each with a long claim.
      const uint64_t begin = offset_ + kFrameHeaderBytes;
      check_.AddCrc(window_crc_.Of(begin, begin + check_.left(), window()));
    } else {
      check_.Add(window().subspan(kFrameHeaderBytes));
    }
    if (check_.good()) return Find::kFrame;
    fault = FrameFault::kCrc;
  }
  why_none_ = FaultText(fault);
  return Find::kNone;
}

bool FrameWalk::Skip(Find found) {
  const ByteSpan held = window();
  if (held.size() < kFrameHeaderBytes) {
    const size_t magic = std::min(held.size(), kFrameMagic.size());
    if (std::memcmp(held.data(), kFrameMagic.data(), magic) != 0) {
      found = Find::kNone;
      why_none_ = FaultText(FrameFault::kNoMagic);
    }
  }
  BeginDamage(found, why_none_);
  if (held.size() < kFrameHeaderBytes) {
    Consume(held.size());
    return false;
  }
  const ByteSpan rest = held.subspan(1);
  const void* next = ::memmem(rest.data(), rest.size(), kFrameMagic.data(),
                              kFrameMagic.size());
  // The last bytes may be the start of a magic.
  Consume(next == nullptr
              ? held.size() - (kFrameMagic.size() - 1)
              : static_cast<size_t>(static_cast<const std::byte*>(next) -
                                    held.data()));
  return true;
}

void FrameWalk::BeginDamage(Find found, std::string_view why) {
  if (damage_) return;
  window_crc_.Start(offset_);
  const bool cut = found == Find::kCut;
  damage_ = {.offset = offset_,
             .cut = cut,
             .why = cut ? "the block there is longer than the rest" : why};
}

std::optional<FrameWalk::Damage> FrameWalk::TakeDamage() {
  std::optional<Damage> damage = std::exchange(damage_, std::nullopt);
  if (!damage || damage->offset == offset_) return std::nullopt;
  damage->bytes = offset_ - damage->offset;
  return damage;
}

void FrameWalk::Stop() {
  follow_ = false;
  source_ended_ = false;  // it may have grown since
}

void FrameWalk::ReleaseMemory() {
  if (begin_ != end_) return;
  buffer_ = std::vector<std::byte>();  // {} would only empty it
  begin_ = end_ = 0;
}

}  // namespace tracefs::format
