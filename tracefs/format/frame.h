// Preamble and frame headers: the outer layer of a trace, which is the same
// whatever the output chain does to payloads. FORMAT.md sections 1 and 2.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tracefs/base/bytes.h"
#include "tracefs/base/status.h"
#include "tracefs/format/constants.h"

namespace tracefs::format {

// "0f1e2d…", 32 digits.
std::string SerialText(const Serial& serial);

struct Preamble {
  uint16_t format_version = kFormatVersion;
  uint16_t min_reader_version = kMinReaderVersion;
  Serial serial{};
  // "compress alg=zstd; file": output filters in the order they were applied,
  // then the driver. Never holds a key. At most kMaxPreambleBytes - 40 bytes;
  // more is cut.
  std::string chain = {};
};

// The bytes every trace starts with.
std::string EncodePreamble(const Preamble& preamble);

// The length of a preamble from its first 12 bytes. kCorrupt if they are not
// the start of a trace or the length is out of range.
Result<size_t> PreambleLength(ByteSpan start);

// Decodes a whole preamble, `bytes` being as long as PreambleLength said.
// kCorrupt if it is damaged; kInvalid if this reader is too old for the trace
// (the message has both versions).
Result<Preamble> DecodePreamble(ByteSpan bytes);

struct FrameHeader {
  uint32_t payload_bytes = 0;
  uint64_t sequence = 0;
  Serial serial{};
  uint16_t kind = static_cast<uint16_t>(FrameKind::kMessages);
  uint32_t crc = 0;  // as read; EncodeFrameHeader computes its own
};

// Writes the header of a frame with this payload, its CRC included.
// header.payload_bytes and header.crc are ignored. The payload must not be
// longer than kMaxPayloadBytes.
void EncodeFrameHeader(std::span<std::byte, kFrameHeaderBytes> out,
                       const FrameHeader& header, ByteSpan payload);

// Reads the fields of a header; false if magic or length cannot be those of a
// frame. Checks neither serial nor CRC.
bool DecodeFrameHeader(std::span<const std::byte, kFrameHeaderBytes> bytes,
                       FrameHeader* header);

// The CRC that a header, of which `header` are the 40 bytes, must carry with
// this payload.
uint32_t FrameCrc(std::span<const std::byte, kFrameHeaderBytes> header,
                  ByteSpan payload);

// Why bytes are not a frame.
enum class FrameFault : uint8_t { kNone, kNoMagic, kLength, kSerial, kCrc };

// Whether bytes are a frame of a trace: its header, then its payload in as many
// pieces as it comes in. All that reads frames asks here, so that nobody
// believes what another one would not.
// Memory: none but itself, whatever a header claims.
class FrameCheck {
 public:
  // A frame of that trace, or of any.
  explicit FrameCheck(std::optional<Serial> serial = std::nullopt)
      : serial_(serial) {}

  // A new frame. Unless there is a fault, left() bytes of payload follow.
  FrameFault Begin(std::span<const std::byte, kFrameHeaderBytes> header);
  const FrameHeader& header() const { return header_; }
  uint32_t left() const { return left_; }

  // Takes what there is of the payload. Returns how much that was.
  size_t Add(ByteSpan bytes);
  // The same for who has the CRC of all that is left, and for who will not ask
  // about the CRC.
  void AddCrc(uint32_t crc);
  size_t Pass(uint64_t bytes);

  // Nothing is left: whether the CRC is right.
  bool good() const { return crc_ == header_.crc; }

 private:
  std::optional<Serial> serial_;
  FrameHeader header_;
  uint32_t left_ = 0;
  uint32_t crc_ = 0;
};

struct FrameView {
  FrameHeader header;
  ByteSpan payload;  // within what was asked about
};
// The frame that `bytes` begin with; nothing unless it is there as a whole.
std::optional<FrameView> FrameAt(ByteSpan bytes, std::optional<Serial> serial);

}  // namespace tracefs::format
