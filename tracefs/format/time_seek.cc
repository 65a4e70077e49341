#include "tracefs/format/time_seek.h"

#include <string.h>

#include <algorithm>

#include "tracefs/format/block_info.h"

namespace tracefs::format {
namespace {

// Where frames are looked for at a time: most are smaller than that.
constexpr size_t kWindowBytes = size_t{64} << 10;
// Bisection ends where so few bytes are left that reading them is as quick.
constexpr uint64_t kNearBytes = uint64_t{128} << 10;

}  // namespace

TimeSeek::TimeSeek(ByteSource* source, PayloadDecoder* decoder,
                   const Serial& serial)
    : source_(source), decoder_(decoder), serial_(serial) {}

Result<ByteSpan> TimeSeek::Read(uint64_t offset, size_t n) {
  if (buffer_.size() < n) buffer_.resize(n);
  size_t have = 0;
  if (looked_at_ > kMaxBytes) return ByteSpan();
  looked_at_ += n;
  while (have < n) {
    const Result<size_t> got = source_->ReadAt(
        offset + have, std::span<std::byte>(buffer_).subspan(have, n - have));
    if (!got.ok()) return got.status();
    if (*got == 0) break;
    have += *got;
  }
  return ByteSpan(buffer_).first(have);
}

bool TimeSeek::ReadTimes(const FrameHeader& header, ByteSpan payload,
                         BlockTimes* times) {
  if (!decoder_->Decode(header, payload, &block_).ok()) return false;
  MessageCursor in(block_);
  Message message;
  if (!in.Next(&message) ||
      message.msg_id != static_cast<uint16_t>(MessageId::kBlock)) {
    return false;
  }
  BlockHead head;
  if (!ReadBlockHead(message.arguments, &head)) return false;
  const uint64_t age = std::max(head.last_ns, head.watermark_ns);
  if (age == 0) return false;
  if (head.events != 0) {
    times->first_ns = head.clock.ToReal(head.first_ns);
    times->last_ns = head.clock.ToReal(head.last_ns);
  }
  times->age_ns = head.clock.ToReal(age);
  times->late_ns = age - head.watermark_ns;
  return true;
}

Result<std::optional<FoundBlock>> TimeSeek::BlockAfter(uint64_t offset,
                                                       uint64_t end) {
  while (offset < end) {
    Result<ByteSpan> window = Read(offset, kWindowBytes);
    if (!window.ok()) return window.status();
    const void* const magic = ::memmem(window->data(), window->size(),
                                       kFrameMagic.data(), kFrameMagic.size());
    if (magic == nullptr) {
      if (window->size() < kFrameMagic.size()) break;
      offset += window->size() - (kFrameMagic.size() - 1);
      if (window->size() < kWindowBytes) break;
      continue;
    }
    const auto skip = static_cast<size_t>(static_cast<const std::byte*>(magic) -
                                          window->data());
    offset += skip;
    if (offset >= end) break;
    ByteSpan frame = window->subspan(skip);
    if (frame.size() < kFrameHeaderBytes) {
      window = Read(offset, kFrameHeaderBytes);
      if (!window.ok()) return window.status();
      frame = *window;
      if (frame.size() < kFrameHeaderBytes) break;
    }
    FrameCheck check(serial_);
    if (check.Begin(frame.first<kFrameHeaderBytes>()) != FrameFault::kNone) {
      ++offset;
      continue;
    }
    const size_t whole = kFrameHeaderBytes + check.left();
    if (frame.size() < whole) {
      window = Read(offset, whole);
      if (!window.ok()) return window.status();
      frame = *window;
    }
    const std::optional<FrameView> view = FrameAt(frame, serial_);
    if (!view) {
      ++offset;
      continue;
    }
    FoundBlock found = {.header = view->header,
                        .offset = offset,
                        .end = offset + whole,
                        .times = {}};
    if (view->header.kind == static_cast<uint16_t>(FrameKind::kMessages) &&
        ReadTimes(view->header, view->payload, &found.times)) {
      return std::optional(found);
    }
    offset += whole;
  }
  return std::optional<FoundBlock>();
}

Result<uint64_t> TimeSeek::Bisect(uint64_t age_ns, uint64_t begin,
                                  uint64_t end) {
  // The block at `begin` may be too old; the one that was found at or behind
  // `end` is not.
  while (end > begin && end - begin > kNearBytes) {
    const uint64_t middle = begin + (end - begin) / 2;
    const Result<std::optional<FoundBlock>> found = BlockAfter(middle, end);
    if (!found.ok()) return found.status();
    if (*found) late_ns_ = std::max(late_ns_, (*found)->times.late_ns);
    if (!*found || (*found)->times.age_ns >= age_ns) {
      end = middle;
    } else {
      // Not its end: the last block may say how the trace ended.
      begin = (*found)->offset;
    }
  }
  return begin;
}

Result<uint64_t> TimeSeek::Find(uint64_t real_ns, uint64_t begin,
                                uint64_t end) {
  late_ns_ = 0;
  const Result<uint64_t> near = Bisect(real_ns, begin, end);
  if (!near.ok() || *near == begin) return near;
  const uint64_t late =
      std::min(kMostLateNs, kLeastLateNs + 2 * std::min(late_ns_, kMostLateNs));
  return Bisect(real_ns - std::min(late, real_ns), begin, *near);
}

Result<std::optional<FoundBlock>> TimeSeek::LastBlock(uint64_t begin,
                                                      uint64_t end) {
  std::optional<FoundBlock> last;
  for (uint64_t back = kWindowBytes;; back *= 2) {
    const uint64_t from = end - begin > back ? end - back : begin;
    for (uint64_t at = from;;) {
      Result<std::optional<FoundBlock>> found = BlockAfter(at, end);
      if (!found.ok()) return found.status();
      if (!*found) break;
      if ((*found)->times.last_ns != 0) last = **found;
      at = (*found)->end;
    }
    if (last || from == begin) return last;
    end = std::max(from, begin + 1);
  }
}

}  // namespace tracefs::format
