#include "tracefs/format/time_seek.h"

#include <string.h>

#include <algorithm>
#include <cstring>

#include "tracefs/format/block_info.h"

namespace tracefs::format {
namespace {

// Where frames are looked for at a time: most are smaller than that.
constexpr size_t kSeekWindowBytes = size_t{64} << 10;
// Bisection ends where so few bytes are left that reading them is as quick.
constexpr uint64_t kNearBytes = uint64_t{128} << 10;
// In what is longer the blocks at both ends are looked at first.
constexpr uint64_t kLongBytes = uint64_t{1} << 20;
// How far beside the place where a moment should be is looked, as a share of
// what is left.
constexpr double kAside = 1.0 / 128;

}  // namespace

TimeSeek::TimeSeek(ByteSource* source, PayloadDecoder* decoder,
                   const Serial& serial)
    : source_(source), decoder_(decoder), serial_(serial) {}

Result<ByteSpan> TimeSeek::Read(uint64_t offset, size_t n) {
  if (buffer_.size() < n) buffer_.resize(n);
  if (looked_at_ > kMaxBytes) return ByteSpan();
  looked_at_ += n;
  // Most often what follows is wanted of what has been read.
  size_t have = 0;
  if (offset >= begin_ && offset < begin_ + filled_) {
    const auto skip = static_cast<size_t>(offset - begin_);
    have = filled_ - skip;
    std::memmove(buffer_.data(), buffer_.data() + skip, have);
  }
  begin_ = offset;
  filled_ = have;
  while (filled_ < n) {
    const Result<size_t> got = source_->ReadAt(
        offset + filled_,
        std::span<std::byte>(buffer_).subspan(filled_, n - filled_));
    if (!got.ok()) return got.status();
    if (*got == 0) break;
    filled_ += *got;
  }
  return ByteSpan(buffer_).first(std::min(filled_, n));
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
    Result<ByteSpan> window = Read(offset, kSeekWindowBytes);
    if (!window.ok()) return window.status();
    const void* const magic = ::memmem(window->data(), window->size(),
                                       kFrameMagic.data(), kFrameMagic.size());
    if (magic == nullptr) {
      if (window->size() < kFrameMagic.size()) break;
      offset += window->size() - (kFrameMagic.size() - 1);
      if (window->size() < kSeekWindowBytes) break;
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

Status TimeSeek::Halve(uint64_t age_ns, uint64_t at, Range* range) {
  const Result<std::optional<FoundBlock>> found = BlockAfter(at, range->end);
  if (!found.ok()) return found.status();
  if (*found) late_ns_ = std::max(late_ns_, (*found)->times.late_ns);
  if (!*found || (*found)->times.age_ns >= age_ns) {
    range->end = at;
    range->end_ns = *found ? (*found)->times.age_ns : 0;
  } else {
    // Not its end: the last block may say how the trace ended.
    range->begin = (*found)->offset;
    range->begin_ns = (*found)->times.age_ns;
  }
  return Status::Ok();
}

Result<uint64_t> TimeSeek::Bisect(uint64_t age_ns, Range range) {
  for (int step = 0; range.bytes() > kNearBytes; ++step) {
    double share = 0.5;
    // In most traces time goes on as bytes do: where the moment should be, a
    // little before it and a little behind. Each third step is one that halves
    // what is left, whatever the trace is like.
    if (step % 3 != 2 && range.begin_ns != 0 && range.end_ns >= age_ns) {
      share = static_cast<double>(age_ns - range.begin_ns) /
              static_cast<double>(range.end_ns - range.begin_ns);
      share += step % 3 == 0 ? -kAside : kAside;
      share = std::clamp(share, kAside, 1 - kAside);
    }
    const auto step_bytes =
        static_cast<uint64_t>(static_cast<double>(range.bytes()) * share);
    const Status status = Halve(age_ns, range.begin + step_bytes, &range);
    if (!status.ok()) return status;
  }
  return range.begin;
}

Result<uint64_t> TimeSeek::Find(uint64_t real_ns, uint64_t begin,
                                uint64_t end) {
  late_ns_ = 0;
  Range all = {.begin = begin, .end = end};
  if (all.bytes() > kLongBytes) {
    // When it begins and when it ends tells where the moment should be.
    Status status = Halve(real_ns, begin, &all);
    if (status.ok() && all.bytes() > kLongBytes) {
      status = Halve(real_ns, end - kLongBytes / 2, &all);
    }
    if (!status.ok()) return status;
  }
  const Result<uint64_t> near = Bisect(real_ns, all);
  if (!near.ok() || *near == begin) return near;
  const uint64_t late =
      std::min(kMostLateNs, kLeastLateNs + 2 * std::min(late_ns_, kMostLateNs));
  const uint64_t age_ns = real_ns - std::min(late, real_ns);
  // Most often a little before: where the blocks are that have been read.
  Range range = {.begin = begin, .end = *near};
  for (uint64_t back = 2 * kNearBytes;
       range.begin == begin && range.bytes() > back; back *= 4) {
    const Status status = Halve(age_ns, range.end - back, &range);
    if (!status.ok()) return status;
  }
  return Bisect(age_ns, range);
}

Result<std::optional<FoundBlock>> TimeSeek::LastBlock(uint64_t begin,
                                                      uint64_t end) {
  std::optional<FoundBlock> last;
  for (uint64_t back = kSeekWindowBytes;; back *= 2) {
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

Result<std::optional<BlockSpan>> TimeSeek::Span(uint64_t begin, uint64_t end) {
  const Result<std::optional<FoundBlock>> last = LastBlock(begin, end);
  if (!last.ok()) return last.status();
  if (!*last) return std::optional<BlockSpan>();
  const uint64_t last_ns = (*last)->times.last_ns;
  BlockSpan span = {.first_ns = (*last)->times.first_ns, .last_ns = last_ns};
  // From the front until nothing can come that began before what has: `passed`
  // tells that, and is asked of each block that is met.
  const auto look = [&](uint64_t at, const auto& passed) {
    while (at < end) {
      const Result<std::optional<FoundBlock>> found = BlockAfter(at, end);
      if (!found.ok()) return found.status();
      if (!*found) break;
      const BlockTimes& times = (*found)->times;
      if (times.first_ns != 0) {
        span.first_ns = std::min(span.first_ns, times.first_ns);
        span.last_ns = std::max(span.last_ns, times.last_ns);
      }
      if (passed(times)) break;
      at = (*found)->end;
    }
    return Status::Ok();
  };
  uint64_t first_age_ns = 0;
  Status status = look(begin, [&](const BlockTimes& times) {
    // A trace without watermarks is as late as any may be.
    if (first_age_ns == 0) first_age_ns = times.age_ns;
    return times.age_ns - times.late_ns >= span.first_ns ||
           times.age_ns > first_age_ns + kMostLateNs;
  });
  if (!status.ok()) return status;
  const Result<uint64_t> tail = Find(last_ns, begin, end);
  if (!tail.ok()) return tail.status();
  status = look(*tail, [](const BlockTimes&) { return false; });
  if (!status.ok()) return status;
  return std::optional(span);
}

}  // namespace tracefs::format
