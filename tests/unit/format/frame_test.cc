// Preamble and frame headers, against the tables of FORMAT.md.
#include "tracefs/format/frame.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tracefs/base/crc32c.h"

namespace tracefs::format {
namespace {

Serial SomeSerial() {
  Serial serial;
  for (size_t i = 0; i < serial.size(); ++i) serial[i] = std::byte(0xa0 + i);
  return serial;
}

// The CRC as its definition has it, bit by bit.
uint32_t SlowCrc32c(std::string_view bytes) {
  uint32_t crc = 0xffffffff;
  for (const char c : bytes) {
    crc ^= static_cast<uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc & 1) ? (crc >> 1) ^ 0x82f63b78u : crc >> 1;
    }
  }
  return ~crc;
}

std::string Le(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

std::string SerialBytes() {
  std::string out;
  for (int i = 0; i < 16; ++i) out += static_cast<char>(0xa0 + i);
  return out;
}

TEST(PreambleTest, HasTheBytesOfTheTable) {
  std::string expected = "TRACEFS\n" + Le(44, 4) + Le(1, 2) + Le(1, 2) +
                         SerialBytes() + Le(4, 2) + Le(0, 2) + "file";
  expected += Le(SlowCrc32c(expected), 4);
  EXPECT_EQ(EncodePreamble({.serial = SomeSerial(), .chain = "file"}),
            expected);
}

TEST(PreambleTest, RoundTrip) {
  for (const std::string& chain :
       {std::string(), std::string("compress alg=zstd; file"),
        std::string(kMaxPreambleBytes - kMinPreambleBytes, 'x')}) {
    const std::string bytes =
        EncodePreamble({.serial = SomeSerial(), .chain = chain});
    const auto length = PreambleLength(AsBytes(bytes).first(12));
    ASSERT_TRUE(length.ok());
    EXPECT_EQ(*length, bytes.size());
    const auto preamble = DecodePreamble(AsBytes(bytes));
    ASSERT_TRUE(preamble.ok()) << preamble.status().message();
    EXPECT_EQ(preamble->chain, chain);
    EXPECT_EQ(preamble->serial, SomeSerial());
    EXPECT_EQ(preamble->format_version, 1);
  }
}

TEST(PreambleTest, TooNewIsRefusedWithBothVersions) {
  const std::string bytes = EncodePreamble(
      {.format_version = 9, .min_reader_version = 7, .serial = SomeSerial()});
  const auto preamble = DecodePreamble(AsBytes(bytes));
  ASSERT_FALSE(preamble.ok());
  EXPECT_NE(preamble.status().message().find('7'), std::string::npos);
  EXPECT_NE(preamble.status().message().find("up to version 1"),
            std::string::npos);
}

TEST(PreambleTest, ANewerWriterThatStaysReadableIsAccepted) {
  const auto newer = DecodePreamble(AsBytes(EncodePreamble(
      {.format_version = 9, .min_reader_version = 1, .serial = SomeSerial()})));
  ASSERT_TRUE(newer.ok());
  EXPECT_EQ(newer->format_version, 9u);
  EXPECT_EQ(newer->min_reader_version, 1u);
}

TEST(PreambleTest, Malicious_EveryFlippedByteIsFound) {
  const std::string good =
      EncodePreamble({.serial = SomeSerial(), .chain = "file"});
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x41);
    EXPECT_FALSE(DecodePreamble(AsBytes(bad)).ok()) << "byte " << i;
  }
}

TEST(PreambleTest, Malicious_EveryCutIsFound) {
  const std::string good =
      EncodePreamble({.serial = SomeSerial(), .chain = "file"});
  for (size_t size = 0; size < good.size(); ++size) {
    EXPECT_FALSE(DecodePreamble(AsBytes(good).first(size)).ok());
  }
}

TEST(FrameTest, HasTheBytesOfTheTable) {
  const std::string payload = "some messages";
  std::array<std::byte, kFrameHeaderBytes> header;
  EncodeFrameHeader(header, {.sequence = 7, .serial = SomeSerial()},
                    AsBytes(payload));
  std::string expected = std::string("TFB\x1a") + Le(payload.size(), 4) +
                         Le(7, 8) + SerialBytes() + Le(1, 2) + Le(0, 2);
  expected += Le(SlowCrc32c(expected + payload), 4);
  EXPECT_EQ(AsText(header), expected);
}

TEST(FrameTest, RoundTrip) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100; ++i) {
    const std::string payload(random() % 1000, 'p');
    const FrameHeader in = {.sequence = random(),
                            .serial = SomeSerial(),
                            .kind = static_cast<uint16_t>(random())};
    std::array<std::byte, kFrameHeaderBytes> bytes;
    EncodeFrameHeader(bytes, in, AsBytes(payload));
    FrameHeader out;
    ASSERT_TRUE(DecodeFrameHeader(bytes, &out));
    EXPECT_EQ(out.payload_bytes, payload.size());
    EXPECT_EQ(out.sequence, in.sequence);
    EXPECT_EQ(out.serial, in.serial);
    EXPECT_EQ(out.kind, in.kind);
    EXPECT_EQ(out.crc, FrameCrc(bytes, AsBytes(payload)));
  }
}

TEST(FrameTest, Malicious_LengthBeyondTheLimitIsNoFrame) {
  std::array<std::byte, kFrameHeaderBytes> bytes;
  EncodeFrameHeader(bytes, {.serial = SomeSerial()}, {});
  FrameHeader out;
  StoreLe<uint32_t>(bytes.data() + 4, kMaxPayloadBytes);
  EXPECT_TRUE(DecodeFrameHeader(bytes, &out));
  StoreLe<uint32_t>(bytes.data() + 4, kMaxPayloadBytes + 1);
  EXPECT_FALSE(DecodeFrameHeader(bytes, &out));
  StoreLe<uint32_t>(bytes.data() + 4, 0xffffffff);
  EXPECT_FALSE(DecodeFrameHeader(bytes, &out));
}

}  // namespace
}  // namespace tracefs::format
