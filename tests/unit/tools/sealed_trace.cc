#include "tests/unit/tools/sealed_trace.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/unit/filters/output/filter_chain.h"
#include "tracefs/base/clock.h"
#include "tracefs/crypto/key_tree.h"
#include "tracefs/format/block_info.h"
#include "tracefs/format/trace_header.h"

namespace tracefs {
namespace {

std::string StartBlock() {
  format::TraceHeader header;
  header.tracer_id = 1;
  header.clock = ClockPair::Now();
  header.Set("filter.text", "op = open");
  const std::vector<std::byte> block = format::EncodeStartBlock(header);
  return std::string(AsText(block));
}

// A block without operations, with FINAL if it is the last.
std::string OtherBlock(bool last, uint64_t blocks) {
  std::vector<std::byte> memory(8192);
  format::MessageWriter writer(memory);
  EXPECT_TRUE(format::WriteBlockHead(
      writer, {.tracer_id = 1, .clock = ClockPair::Now()}));
  if (last) {
    EXPECT_TRUE(format::WriteFinal(writer, {.tracer_id = 1,
                                            .clock = ClockPair::Now(),
                                            .events = 0,
                                            .blocks = blocks,
                                            .op_totals = {},
                                            .loss_totals = {},
                                            .end_reason = "stop"}));
  }
  return std::string(AsText(writer.bytes()));
}

}  // namespace

std::string MakeFrame(const format::FrameHeader& header,
                      const std::string& payload) {
  std::array<std::byte, format::kFrameHeaderBytes> bytes;
  format::EncodeFrameHeader(bytes, header, AsBytes(payload));
  return std::string(AsText(bytes)) + payload;
}

SealedTrace SealedTrace::Make(const std::string& filters, size_t blocks,
                              const format::Serial& serial) {
  SealedTrace trace;
  const std::string output = filters + " file = x";
  trace.chain = ChainTextOf(output);
  trace.serial = serial;
  trace.preamble =
      format::EncodePreamble({.serial = serial, .chain = trace.chain});
  trace.contents = {StartBlock()};
  for (size_t i = 1; i < blocks; ++i) {
    trace.contents.push_back(OtherBlock(i + 1 == blocks, blocks));
  }
  TraceIdentity identity = TestIdentity();
  identity.serial = serial;
  identity.preamble = trace.preamble;
  for (const Written& written : RunChain(output, trace.contents, identity)) {
    trace.frames.push_back(
        MakeFrame({.sequence = written.info.sequence, .serial = serial},
                  written.payload));
  }
  return trace;
}

std::string SealedTrace::Bytes() const {
  std::string bytes = preamble;
  for (const std::string& frame : frames) bytes += frame;
  return bytes;
}

std::string SealedTrace::Payload(size_t frame) const {
  return frames[frame].substr(format::kFrameHeaderBytes);
}

namespace {

format::FrameHeader HeaderOf(const std::string& frame) {
  format::FrameHeader header;
  EXPECT_TRUE(format::DecodeFrameHeader(
      std::span<const std::byte, format::kFrameHeaderBytes>(
          AsBytes(frame).first(format::kFrameHeaderBytes)),
      &header));
  return header;
}

}  // namespace

void SealedTrace::SetPayload(size_t frame, const std::string& payload) {
  frames[frame] = MakeFrame(HeaderOf(frames[frame]), payload);
}

void SealedTrace::SetNumber(size_t frame, uint64_t number) {
  format::FrameHeader header = HeaderOf(frames[frame]);
  header.sequence = number;
  frames[frame] = MakeFrame(header, Payload(frame));
}

void SealedTrace::SetSerial(size_t frame, const format::Serial& other) {
  format::FrameHeader header = HeaderOf(frames[frame]);
  header.serial = other;
  frames[frame] = MakeFrame(header, Payload(frame));
}

void SealedTrace::SetChain(const std::string& text) {
  preamble = format::EncodePreamble({.serial = serial, .chain = text});
}

std::string ForgePayload(const ChecksumHead& head, const format::Serial& serial,
                         uint64_t number, const std::string& contents,
                         ByteSpan key) {
  std::string payload(kChecksumHeadBytes, '\0');
  EncodeChecksumHead(head, reinterpret_cast<std::byte*>(payload.data()));
  payload += contents;
  const std::array<std::byte, 40> prefix =
      BlockPrefix(kChecksumLabel, serial, number);
  std::array<std::byte, 32> tag;
  HmacSha256(key, AsBytes(std::string(AsText(prefix)) + payload), tag);
  return payload + std::string(AsText(tag));
}

SecretKey BlockKey(const SecretKey& verify, uint64_t epoch,
                   const format::Serial& serial, uint64_t number) {
  KeyTreeReader epochs(verify.get());
  const SecretKey root = SealRoot(epochs.KeyOf(epoch), serial);
  KeyTreeReader blocks(root.get());
  return SecretKey(blocks.KeyOf(number));
}

}  // namespace tracefs
