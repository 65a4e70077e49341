// FramePlaces: where the frames of a file are, by their headers alone: a short
// read for each, however long they are. What the payloads hold is not looked
// at, nor whether it is what their CRCs say.
#pragma once

#include <cstdint>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/format/frame.h"
#include "tracefs/format/index_piece.h"

namespace tracefs::format {

struct FramePlace {
  uint64_t offset = 0;  // of the header
  FrameHeader header;
  uint64_t end() const {
    return offset + kFrameHeaderBytes + header.payload_bytes;
  }
};

struct FramePlaces {
  Preamble preamble;
  std::vector<FramePlace> frames;
  // The end of the last whole frame, which is that of the file unless it ends
  // within one.
  uint64_t end = 0;

  // What an index says of the first `count` frames; the caller knows `events`.
  IndexedPart PartOf(size_t count, uint64_t events) const;
};

// Of a regular file. kCorrupt where it is no plain trace: something else than
// whole blocks with the numbers 0, 1, 2, … is in it, as a mark. What follows
// the last whole one may be a part of one that is being written. Memory: some
// 50 bytes for each frame.
Result<FramePlaces> FindFrames(int fd);

}  // namespace tracefs::format
