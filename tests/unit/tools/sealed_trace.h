// SealedTrace: a whole trace made by the real filters, as a preamble and
// frames that an attacker can rearrange.
#pragma once

#include <string>
#include <vector>

#include "filters/output/checksum_head.h"
#include "tests/unit/filters/output/test_keys.h"
#include "tracefs/format/frame.h"

namespace tracefs {

struct SealedTrace {
  std::string chain;
  format::Serial serial{};
  std::string preamble;
  std::vector<std::string> contents;  // what went into the filters
  std::vector<std::string> frames;

  // `filters` as in a config ("checksum …;"); `blocks` blocks, START and FINAL
  // included.
  static SealedTrace Make(const std::string& filters, size_t blocks,
                          const format::Serial& serial);

  std::string Bytes() const;

  // --- What anyone can do with the frame of a block.
  std::string Payload(size_t frame) const;
  // Puts another payload into a frame, with the right CRC.
  void SetPayload(size_t frame, const std::string& payload);
  // Changes number or serial of a frame, with the right CRC.
  void SetNumber(size_t frame, uint64_t number);
  void SetSerial(size_t frame, const format::Serial& serial);
  // The preamble with another chain text, with the right CRC.
  void SetChain(const std::string& text);
};

// A frame with any header.
std::string MakeFrame(const format::FrameHeader& header,
                      const std::string& payload);

// What someone can write who has the key of a block: hmac-sha256.
std::string ForgePayload(const ChecksumHead& head, const format::Serial& serial,
                         uint64_t number, const std::string& contents,
                         ByteSpan key);
// The key of a block of a sealed trace, by the verify secret.
SecretKey BlockKey(const SecretKey& verify, uint64_t epoch,
                   const format::Serial& serial, uint64_t number);

}  // namespace tracefs
