#include "tracefs/format/frame.h"

#include <algorithm>
#include <cstring>

#include "tracefs/base/append_le.h"
#include "tracefs/base/crc32c.h"
#include "tracefs/base/hex.h"
#include "tracefs/format/window_crc.h"

namespace tracefs::format {
namespace {

constexpr size_t kHeaderBytesInCrc = kFrameHeaderBytes - 4;

}  // namespace

std::string SerialText(const Serial& serial) { return Hex(serial); }

std::string EncodePreamble(const Preamble& preamble) {
  const std::string_view chain =
      std::string_view(preamble.chain)
          .substr(0, kMaxPreambleBytes - kMinPreambleBytes);
  std::string out(kPreambleMagic);
  AppendLe<uint32_t>(static_cast<uint32_t>(kMinPreambleBytes + chain.size()),
                     &out);
  AppendLe<uint16_t>(preamble.format_version, &out);
  AppendLe<uint16_t>(preamble.min_reader_version, &out);
  out += AsText(preamble.serial);
  AppendLe<uint16_t>(static_cast<uint16_t>(chain.size()), &out);
  AppendLe<uint16_t>(0, &out);
  out += chain;
  AppendLe<uint32_t>(Crc32c(AsBytes(out)), &out);
  return out;
}

Result<size_t> PreambleLength(ByteSpan start) {
  ByteCursor in(start);
  const auto magic = in.Take(kPreambleMagic.size());
  const auto length_untrusted = in.TakeLe<uint32_t>();
  if (!magic || AsText(*magic) != kPreambleMagic) {
    return Status::Corrupt(
        "not a Tracefs trace: it does not start with "
        "\"TRACEFS\"");
  }
  if (!length_untrusted || *length_untrusted < kMinPreambleBytes ||
      *length_untrusted > kMaxPreambleBytes) {
    return Status::Corrupt(
        "the preamble at byte 0 is damaged: its length is out of range");
  }
  return static_cast<size_t>(*length_untrusted);
}

Result<Preamble> DecodePreamble(ByteSpan bytes) {
  const Result<size_t> length = PreambleLength(bytes);
  if (!length.ok()) return length.status();
  if (bytes.size() != *length) {
    return Status::Corrupt("the trace is cut within its preamble");
  }
  const ByteSpan checked = bytes.first(bytes.size() - 4);
  if (LoadLe<uint32_t>(bytes.data() + checked.size()) != Crc32c(checked)) {
    return Status::Corrupt(
        "the preamble at byte 0 is damaged: its CRC is wrong");
  }
  const std::byte* p = bytes.data();
  Preamble preamble;
  preamble.format_version = LoadLe<uint16_t>(p + 12);
  preamble.min_reader_version = LoadLe<uint16_t>(p + 14);
  if (preamble.min_reader_version > kFormatVersion) {
    return Status::Invalid("the trace needs a reader of format version " +
                           std::to_string(preamble.min_reader_version) +
                           "; this one reads up to version " +
                           std::to_string(kFormatVersion) +
                           ": use a newer Tracefs");
  }
  std::memcpy(preamble.serial.data(), p + 16, kSerialBytes);
  const size_t chain_untrusted = LoadLe<uint16_t>(p + 32);
  if (chain_untrusted > bytes.size() - kMinPreambleBytes) {
    return Status::Corrupt(
        "the preamble at byte 0 is damaged: the chain text is longer than it");
  }
  preamble.chain = AsText(bytes.subspan(kPreambleFixedBytes, chain_untrusted));
  return preamble;
}

void EncodeFrameHeader(std::span<std::byte, kFrameHeaderBytes> out,
                       const FrameHeader& header, ByteSpan payload) {
  std::byte* p = out.data();
  std::memcpy(p, kFrameMagic.data(), kFrameMagic.size());
  StoreLe<uint32_t>(p + 4, static_cast<uint32_t>(payload.size()));
  StoreLe<uint64_t>(p + 8, header.sequence);
  std::memcpy(p + 16, header.serial.data(), kSerialBytes);
  StoreLe<uint16_t>(p + 32, header.kind);
  StoreLe<uint16_t>(p + 34, 0);
  StoreLe<uint32_t>(p + 36, FrameCrc(out, payload));
}

bool DecodeFrameHeader(std::span<const std::byte, kFrameHeaderBytes> bytes,
                       FrameHeader* header) {
  const std::byte* p = bytes.data();
  if (std::memcmp(p, kFrameMagic.data(), kFrameMagic.size()) != 0) {
    return false;
  }
  header->payload_bytes = LoadLe<uint32_t>(p + 4);
  header->sequence = LoadLe<uint64_t>(p + 8);
  std::memcpy(header->serial.data(), p + 16, kSerialBytes);
  header->kind = LoadLe<uint16_t>(p + 32);
  header->crc = LoadLe<uint32_t>(p + 36);
  return header->payload_bytes <= kMaxPayloadBytes;
}

uint32_t FrameCrc(std::span<const std::byte, kFrameHeaderBytes> header,
                  ByteSpan payload) {
  return Crc32c(payload, Crc32c(header.first(kHeaderBytesInCrc)));
}

FrameFault FrameCheck::Begin(
    std::span<const std::byte, kFrameHeaderBytes> header) {
  left_ = 0;
  if (!DecodeFrameHeader(header, &header_)) {
    return std::memcmp(header.data(), kFrameMagic.data(), kFrameMagic.size()) ==
                   0
               ? FrameFault::kLength
               : FrameFault::kNoMagic;
  }
  if (serial_ && header_.serial != *serial_) {
    return FrameFault::kSerial;
  }
  left_ = header_.payload_bytes;
  crc_ = FrameCrc(header, {});
  return FrameFault::kNone;
}

size_t FrameCheck::Add(ByteSpan bytes) {
  bytes = bytes.first(std::min<size_t>(left_, bytes.size()));
  crc_ = Crc32c(bytes, crc_);
  return Pass(bytes.size());
}

void FrameCheck::AddCrc(uint32_t crc) {
  crc_ = CrcOfBoth(crc_, crc, left_);
  left_ = 0;
}

size_t FrameCheck::Pass(uint64_t bytes) {
  const auto passed = static_cast<uint32_t>(std::min<uint64_t>(left_, bytes));
  left_ -= passed;
  return passed;
}

std::optional<FrameView> FrameAt(ByteSpan bytes, std::optional<Serial> serial) {
  if (bytes.size() < kFrameHeaderBytes) return std::nullopt;
  FrameCheck check(serial);
  const ByteSpan rest = bytes.subspan(kFrameHeaderBytes);
  if (check.Begin(bytes.first<kFrameHeaderBytes>()) != FrameFault::kNone ||
      check.left() > rest.size()) {
    return std::nullopt;
  }
  const ByteSpan payload = rest.first(check.left());
  check.Add(payload);
  if (!check.good()) return std::nullopt;
  return FrameView{check.header(), payload};
}

}  // namespace tracefs::format
