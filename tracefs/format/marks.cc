#include "tracefs/format/marks.h"

#include <array>

#include "tracefs/base/append_le.h"
#include "tracefs/base/crc32c.h"

namespace tracefs::format {
namespace {

std::string MarkFrame(FrameKind kind, const Serial& serial, uint64_t sequence,
                      const std::string& payload) {
  std::array<std::byte, kFrameHeaderBytes> header;
  EncodeFrameHeader(header,
                    {.sequence = sequence,
                     .serial = serial,
                     .kind = static_cast<uint16_t>(kind)},
                    AsBytes(payload));
  return std::string(AsText(header)) + payload;
}

}  // namespace

std::string EncodePartMark(FrameKind kind, const Serial& serial,
                           const PartMark& mark) {
  std::string payload;
  AppendLe<uint64_t>(mark.part, &payload);
  AppendLe<uint64_t>(mark.block, &payload);
  AppendLe<uint32_t>(mark.link, &payload);
  AppendLe<uint32_t>(0, &payload);
  return MarkFrame(kind, serial, mark.block, payload);
}

std::optional<PartMark> DecodePartMark(ByteSpan payload) {
  ByteCursor in(payload);
  const auto part = in.TakeLe<uint64_t>();
  const auto block = in.TakeLe<uint64_t>();
  const auto link = in.TakeLe<uint32_t>();
  const auto reserved = in.TakeLe<uint32_t>();
  if (!reserved || *block == 0) return std::nullopt;
  return PartMark{.part = *part, .block = *block, .link = *link};
}

void PartLink::Add(uint32_t frame_crc) {
  std::byte bytes[4];
  StoreLe<uint32_t>(bytes, frame_crc);
  crc_ = Crc32c(bytes, crc_);
}

std::string EncodeSnapshotMark(const Serial& serial, const SnapshotMark& mark) {
  std::string payload;
  for (const uint64_t n : {mark.number, mark.real_ns, mark.blocks, mark.events,
                           mark.overwritten_blocks, mark.overwritten_events}) {
    AppendLe<uint64_t>(n, &payload);
  }
  payload += mark.reason.substr(0, SnapshotMark::kMaxReasonBytes);
  return MarkFrame(FrameKind::kSnapshot, serial, /*sequence=*/0, payload);
}

std::optional<SnapshotMark> DecodeSnapshotMark(ByteSpan payload) {
  ByteCursor in(payload);
  SnapshotMark mark;
  for (uint64_t* n : {&mark.number, &mark.real_ns, &mark.blocks, &mark.events,
                      &mark.overwritten_blocks, &mark.overwritten_events}) {
    const auto taken = in.TakeLe<uint64_t>();
    if (!taken) return std::nullopt;
    *n = *taken;
  }
  if (in.left() > SnapshotMark::kMaxReasonBytes) return std::nullopt;
  mark.reason = AsText(in.rest());
  return mark;
}

}  // namespace tracefs::format
