// Fuzz target: what sender and receiver of a trace hear from each other
// (tracefs/net/PROTOCOL.md). The first byte of the input says which of the two
// listens, the second how the stream is cut into reads and how many blocks are
// there already; the stream follows.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/fuzz/structured_trace.h"
#include "tracefs/base/crc32c.h"
#include "tracefs/format/frame.h"
#include "tracefs/format/frame_parser.h"
#include "tracefs/net/wire.h"

namespace tracefs {

// Bits of the first byte.
constexpr uint8_t kSenderListens = 1;
// Checksums and serials are put right first: else hardly a changed input gets
// behind them.
constexpr uint8_t kRepaired = 2;

namespace {

constexpr uint32_t kMaxFrame = 1024;

void Check(bool holds) {
  if (!holds) std::abort();
}

// The stream as reads bring it, each in memory of its own: nothing may be read
// behind its end.
class Reads {
 public:
  // `step` 0: all at once. Else reads of `step`, then twice `step`, … and again
  // from the beginning.
  Reads(std::string_view stream, size_t step) : stream_(stream), step_(step) {}

  bool Next(std::vector<std::byte>* read) {
    if (stream_.empty()) return false;
    size_t bytes = step_ == 0 ? stream_.size() : step_ * (1 + turn_++ % 4);
    bytes = std::min(bytes, stream_.size());
    const ByteSpan part = AsBytes(stream_.substr(0, bytes));
    read->assign(part.begin(), part.end());
    stream_.remove_prefix(bytes);
    return true;
  }

 private:
  std::string_view stream_;
  const size_t step_;
  size_t turn_ = 0;
};

// --- The sender listens: replies.

// Encoded again, and whether the stream was in order up to its end.
std::pair<std::string, bool> Replies(std::string_view stream, size_t step) {
  Reads reads(stream, step);
  std::vector<std::byte> read;
  std::string buffer;
  std::string all;
  while (reads.Next(&read)) {
    buffer += AsText(read);
    for (;;) {
      const auto reply = net::TakeReply(buffer);
      if (!reply.ok()) {
        Check(!reply.status().message().empty());
        return {all, false};
      }
      if (!*reply) break;
      std::string again = net::EncodeReply(**reply);
      Check(again.size() <= net::kMaxReplyBytes);
      all += again;
      // What we would have said ourselves means the same.
      const auto echo = net::TakeReply(again);
      Check(echo.ok() && *echo && again.empty());
      Check((*echo)->type == (*reply)->type && (*echo)->next == (*reply)->next);
      Check((*echo)->live == (*reply)->live);
      Check((*echo)->max_frame == (*reply)->max_frame);
    }
    Check(buffer.size() < net::kMaxReplyBytes);
  }
  return {all, true};
}

// --- The receiver listens: HELLO, then frames.

struct Kept {
  std::string frames;
  uint64_t next = 0;
  bool in_order = true;

  bool operator==(const Kept&) const = default;
};

// The slow and obvious way.
Kept ExpectFrames(std::string_view stream, const format::Serial& serial,
                  uint64_t next) {
  Kept kept{.frames = {}, .next = next};
  while (stream.size() >= format::kFrameHeaderBytes) {
    const auto header = AsBytes(stream).first<format::kFrameHeaderBytes>();
    format::FrameHeader frame;
    if (!format::DecodeFrameHeader(header, &frame) || frame.serial != serial ||
        frame.payload_bytes + header.size() > kMaxFrame ||
        frame.sequence == UINT64_MAX) {
      kept.in_order = false;
      break;
    }
    const size_t bytes = header.size() + frame.payload_bytes;
    if (stream.size() < bytes) break;
    if (frame.sequence >= kept.next) {
      if (format::FrameCrc(header, AsBytes(stream).subspan(
                                       header.size(), frame.payload_bytes)) !=
          frame.crc) {
        kept.in_order = false;
        break;
      }
      kept.frames += stream.substr(0, bytes);
      kept.next = frame.sequence + 1;
    }
    stream.remove_prefix(bytes);
  }
  return kept;
}

Kept ParseFrames(std::string_view stream, const format::Serial& serial,
                 uint64_t next, size_t step) {
  FrameParser parser(serial, next, kMaxFrame);
  Reads reads(stream, step);
  std::vector<std::byte> read;
  std::vector<FrameParser::Piece> pieces;
  Kept kept{.frames = {}, .next = next};
  size_t whole = 0;
  while (kept.in_order && reads.Next(&read)) {
    pieces.clear();
    const Status status = parser.Feed(read, &pieces);
    kept.in_order = status.ok();
    Check(status.ok() || !status.message().empty());
    for (const FrameParser::Piece& piece : pieces) {
      Check(piece.whole <= piece.bytes.size());
      if (piece.whole != 0) {
        Check(piece.next > kept.next);
        whole = kept.frames.size() + piece.whole;
        kept.next = piece.next;
      }
      kept.frames += AsText(piece.bytes);
    }
  }
  Check(kept.next == parser.next());
  // What has come of a frame that is cut or wrong is not counted.
  kept.frames.resize(whole);
  return kept;
}

// Length of the HELLO that the stream begins with, if it is one.
std::optional<size_t> HelloBytes(std::string_view stream) {
  if (stream.size() < 12) return std::nullopt;
  const auto length = net::HelloLength(AsBytes(stream).first(12));
  if (!length.ok()) {
    Check(!length.status().message().empty());
    return std::nullopt;
  }
  Check(*length <= net::kMaxHelloBytes);
  if (stream.size() < *length) return std::nullopt;
  return *length;
}

void Repair(std::string* stream) {
  const auto hello = HelloBytes(*stream);
  if (!hello) return;
  const auto bytes = std::as_writable_bytes(std::span(*stream));
  const auto preamble =
      bytes.subspan(net::kHelloFixedBytes, *hello - net::kHelloFixedBytes);
  const size_t checked = preamble.size() - 4;
  StoreLe<uint32_t>(preamble.data() + checked, Crc32c(preamble.first(checked)));
  format::Serial serial;
  std::copy_n(preamble.data() + 16, serial.size(), serial.data());
  auto rest = bytes.subspan(*hello);
  format::FrameHeader frame;
  while (rest.size() >= format::kFrameHeaderBytes) {
    const auto header = rest.first<format::kFrameHeaderBytes>();
    if (!format::DecodeFrameHeader(header, &frame)) break;
    const size_t payload = frame.payload_bytes;
    if (payload > rest.size() - header.size()) break;
    frame.serial = serial;
    format::EncodeFrameHeader(header, frame,
                              rest.subspan(header.size(), payload));
    rest = rest.subspan(header.size() + payload);
  }
}

void ListenAsReceiver(std::string stream, bool repaired, size_t step,
                      uint64_t next) {
  if (repaired) Repair(&stream);
  const auto length = HelloBytes(stream);
  if (!length) return;
  const auto hello = net::DecodeHello(AsBytes(stream).first(*length));
  if (!hello.ok()) {
    Check(!hello.status().message().empty());
    return;
  }
  const auto echo = net::DecodeHello(AsBytes(net::EncodeHello(*hello)));
  Check(echo.ok() && echo->first == hello->first &&
        echo->serial == hello->serial && echo->preamble == hello->preamble);
  const std::string_view frames = std::string_view(stream).substr(*length);
  const Kept expected = ExpectFrames(frames, hello->serial, next);
  Check(ParseFrames(frames, hello->serial, next, 0) == expected);
  Check(ParseFrames(frames, hello->serial, next, step) == expected);
}

}  // namespace
}  // namespace tracefs

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const uint8_t who = data[0];
  const size_t step = 1 + data[1] % 64;
  std::string stream(reinterpret_cast<const char*>(data) + 2, size - 2);
  if ((who & tracefs::kSenderListens) != 0) {
    const auto [whole, in_order] = tracefs::Replies(stream, 0);
    const auto [cut, cut_in_order] = tracefs::Replies(stream, step);
    tracefs::Check(whole == cut && in_order == cut_in_order);
  } else {
    tracefs::ListenAsReceiver(std::move(stream),
                              (who & tracefs::kRepaired) != 0, step,
                              /*next=*/data[1] / 64);
  }
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size,
                                          size_t max, unsigned seed) {
  using tracefs::fuzz::Below;
  tracefs::fuzz::Dice dice(seed + 1);
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  // Frames behind a HELLO, whose checksums are put right.
  if (size < 2 + 12 || (data[0] & tracefs::kSenderListens) != 0 ||
      Below(dice, 3) == 0) {
    return LLVMFuzzerMutate(data, size, max);
  }
  const size_t hello = tracefs::LoadLe<uint32_t>(input.data() + 2 + 8);
  if (hello > size - 2) return LLVMFuzzerMutate(data, size, max);
  std::string made(input.substr(0, 2 + hello));
  made[0] = static_cast<char>(made[0] | tracefs::kRepaired);
  made += tracefs::fuzz::ChangedFrames(input.substr(2 + hello), dice);
  return tracefs::fuzz::PutBack(made, data, max);
}
