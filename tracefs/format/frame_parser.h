// FrameParser: follows the frames of one trace in the bytes of a connection,
// and says which of them to keep.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tracefs/base/bytes.h"
#include "tracefs/base/status.h"
#include "tracefs/format/frame.h"

namespace tracefs {

// Memory: none but itself, however large a frame is.
class FrameParser {
 public:
  // Frames with numbers below `next` are here already and are skipped.
  FrameParser(const format::Serial& serial, uint64_t next, uint32_t max_frame)
      : next_(next), max_frame_(max_frame), check_(serial) {}

  // Bytes to be appended to what was kept before. After the first `whole` of
  // them all is whole frames, the last of which has the number `next` - 1; 0 if
  // none ends here.
  struct Piece {
    ByteSpan bytes;
    size_t whole = 0;
    uint64_t next = 0;
  };
  // Takes the bytes that follow. Pieces are valid until the next call, and as
  // long as `bytes`. kCorrupt: what comes is not a frame of this trace, or a
  // damaged one; kInvalid: one that is too large. The connection is useless
  // then, and the pieces end with a whole frame.
  Status Feed(ByteSpan bytes, std::vector<Piece>* pieces);

  bool in_frame() const { return have_ != 0 || in_payload_; }
  uint64_t next() const { return next_; }

 private:
  Status TakeHeader();

  uint64_t next_;
  const uint32_t max_frame_;
  std::array<std::byte, format::kFrameHeaderBytes> header_;
  size_t have_ = 0;  // bytes of it
  // One that came in two reads; there is at most one in each.
  std::array<std::byte, format::kFrameHeaderBytes> split_header_;
  format::FrameCheck check_;
  bool in_payload_ = false;
  bool skip_ = false;
};

}  // namespace tracefs
