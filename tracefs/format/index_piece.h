// INDEX messages: what was worked out of a trace, in the trace itself, so that
// questions need not read all of it. FORMAT.md section 8f.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "tracefs/base/bytes.h"
#include "tracefs/format/message_cursor.h"
#include "tracefs/format/message_writer.h"

namespace tracefs::format {

// The part of a trace that an index was made from: all of its frames up to a
// place.
struct IndexedPart {
  uint64_t bytes = 0;   // of the trace before the first frame after it
  uint64_t frames = 0;  // blocks, block 0 among them
  uint64_t events = 0;  // operation messages in them
  uint32_t link = 0;    // of their frames (marks.h, PartLink)
  friend bool operator==(const IndexedPart&, const IndexedPart&) = default;
};

// A section of an index in pieces, one a block. Views hold as long as it.
struct IndexPiece {
  static constexpr size_t kMostBytes = size_t{4} << 20;

  std::string_view of;  // "deps 1": what it answers, and in which form
  IndexedPart part;
  uint8_t section = 0;
  uint32_t piece = 0;  // 0, 1, … of
  uint32_t pieces = 0;
  ByteSpan data;
};

using IndexSink = std::function<void(const IndexPiece&)>;

// False, and nothing written, if it does not fit.
bool WriteIndexPiece(MessageWriter& out, const IndexPiece& piece);
// False if the arguments end within one.
bool ReadIndexPiece(ByteSpan arguments, const ArgumentWidths& widths,
                    IndexPiece* piece);

}  // namespace tracefs::format
