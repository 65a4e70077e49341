// Marks: frames that are not blocks and say what a file holds of a trace: a
// part of a rotated trace, or a snapshot of a flight recorder. Always in clear,
// as the driver writes them. FORMAT.md section 2.1.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tracefs/base/bytes.h"
#include "tracefs/format/constants.h"
#include "tracefs/format/frame.h"

namespace tracefs::format {

inline bool IsMark(uint16_t kind) {
  return kind == static_cast<uint16_t>(FrameKind::kPart) ||
         kind == static_cast<uint16_t>(FrameKind::kPartEnd) ||
         kind == static_cast<uint16_t>(FrameKind::kSnapshot);
}

// The payload of kPart and of kPartEnd.
struct PartMark {
  uint64_t part = 0;  // of this file: 0, 1, 2, …
  // kPart: the first block of the file besides block 0. kPartEnd: the first
  // one of the next file.
  uint64_t block = 0;
  // kPart: the link of the part before, 0 in part 0. kPartEnd: of this one.
  uint32_t link = 0;
};

// The whole frame: header and payload.
std::string EncodePartMark(FrameKind kind, const Serial& serial,
                           const PartMark& mark);
// Nothing if the payload is none.
std::optional<PartMark> DecodePartMark(ByteSpan payload);

// The link of a part: CRC-32C over the CRCs of its frames, the mark at its
// beginning included, the mark at its end not.
class PartLink {
 public:
  PartLink() = default;
  explicit PartLink(uint32_t so_far) : crc_(so_far) {}
  void Add(uint32_t frame_crc);
  uint32_t value() const { return crc_; }

 private:
  uint32_t crc_ = 0;
};

// The payload of kSnapshot.
struct SnapshotMark {
  static constexpr size_t kMaxReasonBytes = 256;

  uint64_t number = 0;   // of this recorder: 1, 2, …; 0: read from its memory
  uint64_t real_ns = 0;  // when it was taken; 0: not known
  uint64_t blocks = 0;   // in the file, besides block 0
  uint64_t events = 0;   // operations in them
  // Since the trace began: what gave way to newer blocks.
  uint64_t overwritten_blocks = 0;
  uint64_t overwritten_events = 0;
  std::string reason;  // "command", "signal", "trigger", "map"
};

std::string EncodeSnapshotMark(const Serial& serial, const SnapshotMark& mark);
std::optional<SnapshotMark> DecodeSnapshotMark(ByteSpan payload);

}  // namespace tracefs::format
