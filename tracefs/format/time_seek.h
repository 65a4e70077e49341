// TimeSeek: where in a trace a moment is, by bisection over its blocks: a few
// reads, however long the trace is, and no index. FORMAT.md section 6.
//
// A block tells two moments before it was written: the latest begin time in it
// and its watermark. The later one, its *age*, grows along the input, but where
// a block of a slow thread comes after one of a quick thread. How far ages may
// go back shows in blocks themselves: by how much their last operation is ahead
// of the watermark. The place that is found is that much, and as much again,
// before the moment: so nothing is missed, as long as no block is later than
// what others near it show.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tracefs/base/bytes.h"
#include "tracefs/base/status.h"
#include "tracefs/format/byte_source.h"
#include "tracefs/format/frame.h"
#include "tracefs/format/message_cursor.h"
#include "tracefs/format/payload_decoder.h"

namespace tracefs::format {

// What a block says of the time of its operations: ns since 1970. The first two
// are 0 where it has none.
struct BlockTimes {
  uint64_t first_ns = 0;
  uint64_t last_ns = 0;
  uint64_t age_ns = 0;
  uint64_t late_ns = 0;  // by how much the watermark is behind the last one
};

// When the first and the last of some operations began: ns since 1970.
struct BlockSpan {
  uint64_t first_ns = 0;
  uint64_t last_ns = 0;
};

// A frame that was found by looking for one.
struct FoundBlock {
  FrameHeader header;
  uint64_t offset = 0;  // of the header
  uint64_t end = 0;     // where the next one begins
  BlockTimes times;
};

// Used by one thread. Memory: two frames, one of them decoded.
class TimeSeek {
 public:
  // How much earlier than the moment reading begins: at least and at most.
  static constexpr uint64_t kLeastLateNs = 20'000'000;
  static constexpr uint64_t kMostLateNs = 2'000'000'000;

  // `source` has a Size, and its place is not changed. Both outlive this.
  TimeSeek(ByteSource* source, PayloadDecoder* decoder, const Serial& serial);

  // Where to begin so as to meet all operations that began at `real_ns` or
  // later: the offset of a frame between `begin` and `end` (offsets; frames
  // begin at `begin`), or `begin`.
  Result<uint64_t> Find(uint64_t real_ns, uint64_t begin, uint64_t end);

  // The first block with a readable head at or after an offset, and before
  // `end`; nothing if there is none. Frames of other kinds are passed over.
  Result<std::optional<FoundBlock>> BlockAfter(uint64_t offset, uint64_t end);
  // The last such block before `end` that has operations, and lies after
  // `begin`.
  Result<std::optional<FoundBlock>> LastBlock(uint64_t begin, uint64_t end);
  // When operations of the blocks between two offsets began, the first one and
  // the last: that may be in a block before the last, or behind the first, as
  // blocks of several threads overlap. Nothing where there are none.
  Result<std::optional<BlockSpan>> Span(uint64_t begin, uint64_t end);

 private:
  // Bytes at an offset, `n` of them or what there is; valid until the next.
  Result<ByteSpan> Read(uint64_t offset, size_t n);
  // Where a moment is: the block at `begin` may be too old, the one that was
  // found at or behind `end` is not.
  struct Range {
    uint64_t begin = 0;
    uint64_t end = 0;
    uint64_t begin_ns = 0;  // ages, where they are known
    uint64_t end_ns = 0;
    uint64_t bytes() const { return end > begin ? end - begin : 0; }
  };
  // Moves an end of it to where the block at or after `at` is.
  Status Halve(uint64_t age_ns, uint64_t at, Range* range);
  // The first block, of those that are looked at, that is no older.
  Result<uint64_t> Bisect(uint64_t age_ns, Range range);
  bool ReadTimes(const FrameHeader& header, ByteSpan payload,
                 BlockTimes* times);

  // Bytes that are looked at in all: who claims more is hostile, and read from
  // front to back.
  static constexpr uint64_t kMaxBytes = uint64_t{1} << 30;

  ByteSource* const source_;
  PayloadDecoder* const decoder_;
  const Serial serial_;
  uint64_t looked_at_ = 0;
  uint64_t late_ns_ = 0;  // the most that was seen
  std::vector<std::byte> buffer_;
  uint64_t begin_ = 0;  // where what it holds is in the input
  size_t filled_ = 0;
  std::vector<std::byte> block_;
};

}  // namespace tracefs::format
