#include "tracefs/net/wire.h"

#include <algorithm>

namespace tracefs::net {
namespace {

constexpr size_t kMaxText = 512;
constexpr uint16_t kLiveFlag = 1;

template <typename T>
void Append(std::string& out, T value) {
  char bytes[sizeof value];
  StoreLe<T>(bytes, value);
  out.append(bytes, sizeof bytes);
}

}  // namespace

std::string EncodeHello(const Hello& hello) {
  std::string out(kHelloMagic);
  Append<uint32_t>(
      out, static_cast<uint32_t>(kHelloFixedBytes + hello.preamble.size()));
  Append<uint16_t>(out, hello.version);
  Append<uint16_t>(out, 0);
  Append<uint64_t>(out, hello.first);
  return out + hello.preamble;
}

Result<size_t> HelloLength(ByteSpan start) {
  ByteCursor in(start);
  const auto magic = in.Take(kHelloMagic.size());
  const auto length_untrusted = in.TakeLe<uint32_t>();
  if (!magic || AsText(*magic) != kHelloMagic) {
    return Status::Corrupt("this is no Tracefs sender");
  }
  if (!length_untrusted ||
      *length_untrusted < kHelloFixedBytes + format::kMinPreambleBytes ||
      *length_untrusted > kMaxHelloBytes) {
    return Status::Corrupt("the length of HELLO is out of range");
  }
  return static_cast<size_t>(*length_untrusted);
}

Result<Hello> DecodeHello(ByteSpan bytes) {
  const Result<size_t> length = HelloLength(bytes);
  if (!length.ok()) return length.status();
  if (bytes.size() != *length) return Status::Corrupt("HELLO is cut");
  Hello hello;
  hello.version = LoadLe<uint16_t>(bytes.data() + 12);
  if (hello.version != kProtocolVersion) {
    return Status::Invalid("the sender speaks version " +
                           std::to_string(hello.version) +
                           " of the protocol, this receiver version " +
                           std::to_string(kProtocolVersion) +
                           ": use the same Tracefs on both sides");
  }
  hello.first = LoadLe<uint64_t>(bytes.data() + 16);
  const ByteSpan preamble = bytes.subspan(kHelloFixedBytes);
  const Result<format::Preamble> decoded = format::DecodePreamble(preamble);
  if (!decoded.ok()) return decoded.status();
  hello.serial = decoded->serial;
  hello.preamble = AsText(preamble);
  return hello;
}

std::string EncodeReply(const Reply& reply) {
  std::string body;
  switch (reply.type) {
    case ReplyType::kWelcome:
      Append<uint16_t>(body, reply.version);
      Append<uint16_t>(body, reply.live ? kLiveFlag : 0);
      Append<uint64_t>(body, reply.next);
      Append<uint32_t>(body, reply.max_frame);
      break;
    case ReplyType::kAck:
      Append<uint64_t>(body, reply.next);
      break;
    case ReplyType::kRefuse:
      Append<uint16_t>(body, static_cast<uint16_t>(reply.reason));
      body += std::string_view(reply.text).substr(0, kMaxText);
      break;
  }
  std::string out;
  Append<uint16_t>(out, static_cast<uint16_t>(reply.type));
  Append<uint16_t>(out, static_cast<uint16_t>(kReplyHeaderBytes + body.size()));
  return out + body;
}

Result<std::optional<Reply>> TakeReply(std::string& bytes) {
  for (;;) {
    if (bytes.size() < kReplyHeaderBytes) return std::optional<Reply>();
    const auto type_untrusted = LoadLe<uint16_t>(bytes.data());
    const size_t length_untrusted = LoadLe<uint16_t>(bytes.data() + 2);
    if (length_untrusted < kReplyHeaderBytes ||
        length_untrusted > kMaxReplyBytes) {
      return Status::Corrupt(
          "what answers there is no tracefs-recv (a reply of " +
          std::to_string(length_untrusted) + " bytes)");
    }
    if (bytes.size() < length_untrusted) return std::optional<Reply>();
    const std::string body =
        bytes.substr(kReplyHeaderBytes, length_untrusted - kReplyHeaderBytes);
    bytes.erase(0, length_untrusted);
    ByteCursor in(AsBytes(body));
    Reply reply;
    reply.type = static_cast<ReplyType>(type_untrusted);
    switch (reply.type) {
      case ReplyType::kWelcome: {
        const auto version = in.TakeLe<uint16_t>();
        const auto flags = in.TakeLe<uint16_t>();
        const auto next = in.TakeLe<uint64_t>();
        const auto max_frame = in.TakeLe<uint32_t>();
        if (!version || !flags || !next || !max_frame) {
          return Status::Corrupt("WELCOME is cut");
        }
        reply.version = *version;
        reply.live = (*flags & kLiveFlag) != 0;
        reply.next = *next;
        reply.max_frame = *max_frame;
        return std::optional<Reply>(std::move(reply));
      }
      case ReplyType::kAck: {
        const auto next = in.TakeLe<uint64_t>();
        if (!next) return Status::Corrupt("ACK is cut");
        reply.next = *next;
        return std::optional<Reply>(std::move(reply));
      }
      case ReplyType::kRefuse: {
        const auto reason = in.TakeLe<uint16_t>();
        if (!reason) return Status::Corrupt("REFUSE is cut");
        reply.reason = static_cast<RefuseReason>(*reason);
        reply.text = AsText(in.rest());
        return std::optional<Reply>(std::move(reply));
      }
    }
  }
}

}  // namespace tracefs::net
