// The protocol's messages: whole, cut at every byte, and with lies in them.
#include "tracefs/net/wire.h"

#include <gtest/gtest.h>

namespace tracefs::net {
namespace {

Hello SomeHello() {
  format::Serial serial;
  serial.fill(std::byte{7});
  return {
      .first = 42,
      .preamble = format::EncodePreamble({.serial = serial, .chain = "tcp"})};
}

TEST(WireTest, HelloComesBack) {
  const std::string bytes = EncodeHello(SomeHello());
  const auto length = HelloLength(AsBytes(bytes).first(12));
  ASSERT_TRUE(length.ok());
  EXPECT_EQ(*length, bytes.size());
  const auto hello = DecodeHello(AsBytes(bytes));
  ASSERT_TRUE(hello.ok()) << hello.status().message();
  EXPECT_EQ(hello->first, 42u);
  EXPECT_EQ(hello->preamble, SomeHello().preamble);
  EXPECT_EQ(hello->serial[0], std::byte{7});
}

// The bytes of PROTOCOL.md, written down by hand.
TEST(WireTest, HelloIsAsSpecified) {
  const std::string bytes = EncodeHello(SomeHello());
  EXPECT_EQ(bytes.substr(0, 8), "TFSNET1\n");
  EXPECT_EQ(bytes.substr(8, 16),
            std::string("\x43\0\0\0\x01\0\0\0\x2a\0\0\0\0\0\0\0", 16));
  EXPECT_EQ(bytes.size(), 0x43u);
}

TEST(WireTest, RepliesAreAsSpecified) {
  EXPECT_EQ(EncodeReply({.type = ReplyType::kAck, .next = 0x0102}),
            std::string("\x02\0\x0c\0\x02\x01\0\0\0\0\0\0", 12));
  EXPECT_EQ(
      EncodeReply({.type = ReplyType::kWelcome,
                   .next = 3,
                   .live = true,
                   .max_frame = 0x110000}),
      std::string("\x01\0\x14\0\x01\0\x01\0\x03\0\0\0\0\0\0\0\0\0\x11\0", 20));
  EXPECT_EQ(EncodeReply({.type = ReplyType::kRefuse,
                         .reason = RefuseReason::kBusy,
                         .text = "no"}),
            std::string("\x03\0\x08\0\x03\0no", 8));
}

TEST(WireTest, Malicious_HelloCutOrChangedAtAnyByteIsRefused) {
  const std::string bytes = EncodeHello(SomeHello());
  for (size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_FALSE(DecodeHello(AsBytes(bytes).first(n)).ok()) << n;
    // The number of the first block may be any.
    if (n >= 14 && n < 24) continue;
    std::string changed = bytes;
    changed[n] = static_cast<char>(changed[n] ^ 0x20);
    EXPECT_FALSE(DecodeHello(AsBytes(changed)).ok()) << n;
  }
}

TEST(WireTest, Malicious_AnotherVersionIsNamed) {
  Hello hello = SomeHello();
  hello.version = 9;
  const auto decoded = DecodeHello(AsBytes(EncodeHello(hello)));
  ASSERT_FALSE(decoded.ok());
  EXPECT_EQ(decoded.status().code(), StatusCode::kInvalid);
  EXPECT_NE(decoded.status().message().find("version 9"), std::string::npos);
}

TEST(WireTest, RepliesComeByteByByte) {
  const std::string bytes =
      EncodeReply({.type = ReplyType::kWelcome, .next = 5, .max_frame = 9}) +
      EncodeReply({.type = ReplyType::kAck, .next = 6}) +
      EncodeReply({.type = ReplyType::kRefuse,
                   .reason = RefuseReason::kNoSpace,
                   .text = "full"});
  std::string buffer;
  std::vector<Reply> replies;
  for (const char c : bytes) {
    buffer += c;
    const auto reply = TakeReply(buffer);
    ASSERT_TRUE(reply.ok());
    if (*reply) replies.push_back(**reply);
  }
  ASSERT_EQ(replies.size(), 3u);
  EXPECT_EQ(replies[0].next, 5u);
  EXPECT_EQ(replies[0].max_frame, 9u);
  EXPECT_EQ(replies[1].next, 6u);
  EXPECT_EQ(replies[2].reason, RefuseReason::kNoSpace);
  EXPECT_EQ(replies[2].text, "full");
}

TEST(WireTest, UnknownRepliesAreSkipped) {
  std::string buffer = std::string("\x63\0\x06\0??", 6) +
                       EncodeReply({.type = ReplyType::kAck, .next = 1});
  const auto reply = TakeReply(buffer);
  ASSERT_TRUE(reply.ok() && *reply);
  EXPECT_EQ((*reply)->next, 1u);
}

TEST(WireTest, Malicious_LengthsThatCannotBeAreRefused) {
  for (const std::string_view bytes :
       {std::string_view("\x02\0\0\0", 4), std::string_view("\x02\0\x03\0", 4),
        std::string_view("\x02\0\x05\x04", 4),
        std::string_view("\x02\0\x05\0\0", 5),
        std::string_view("\x01\0\x08\0\0\0\0\0", 8),
        // Too short for `next`, not for what follows it.
        std::string_view("\x01\0\x0c\0\x01\0\0\0\xff\0\0\0", 12),
        std::string_view("\x03\0\x04\0", 4)}) {
    std::string buffer(bytes);
    EXPECT_FALSE(TakeReply(buffer).ok());
  }
}

}  // namespace
}  // namespace tracefs::net
