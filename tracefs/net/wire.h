// The messages that sender and receiver of a trace exchange (PROTOCOL.md).
//
// The sender says HELLO once and then sends frames as they are in a file; the
// receiver answers WELCOME or REFUSE once, then ACKs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tracefs/base/bytes.h"
#include "tracefs/base/status.h"
#include "tracefs/format/constants.h"
#include "tracefs/format/frame.h"

namespace tracefs::net {

inline constexpr std::string_view kHelloMagic = "TFSNET1\n";
inline constexpr uint16_t kProtocolVersion = 1;

// --- Sender to receiver.

// magic 8, length 4 (of the whole HELLO), version 2, flags 2, first 8; then the
// preamble of the trace (FORMAT.md section 1).
inline constexpr size_t kHelloFixedBytes = 24;
inline constexpr size_t kMaxHelloBytes =
    kHelloFixedBytes + format::kMaxPreambleBytes;

struct Hello {
  uint16_t version = kProtocolVersion;
  // Number of the oldest block that the sender still has.
  uint64_t first = 0;
  // As encoded; a decoded one was checked.
  std::string preamble = {};
  format::Serial serial{};  // of the preamble; not used by EncodeHello
};

std::string EncodeHello(const Hello& hello);

// The length of a HELLO from its first 12 bytes. kCorrupt if they are not the
// start of one.
Result<size_t> HelloLength(ByteSpan start);
// `bytes`: as long as HelloLength said. kInvalid if the version is not ours,
// kCorrupt if something in it is wrong.
Result<Hello> DecodeHello(ByteSpan bytes);

// --- Receiver to sender: type 2, length 2 (of the whole message), then fields.

enum class ReplyType : uint16_t { kWelcome = 1, kAck = 2, kRefuse = 3 };

// Why a receiver ends a connection. Numbers are never reused.
enum class RefuseReason : uint16_t {
  kVersion = 1,     // it does not speak this version of the protocol
  kBadHello = 2,    // the HELLO is damaged
  kBusy = 3,        // a limit on clients is reached: later, perhaps
  kNoSpace = 4,     // its disk is full
  kNotAllowed = 5,  // this client may not send
  kBadData = 6,     // a damaged frame, or one of another trace
  kTooLarge = 7,    // a frame or a trace larger than it takes
  kClosing = 8,     // it ends
  kSuperseded = 9,  // the sender of this trace has connected again
  kSlow = 10,       // a frame or a HELLO took too long
};

inline constexpr size_t kReplyHeaderBytes = 4;
inline constexpr size_t kMaxReplyBytes = 1024;

struct Reply {
  ReplyType type = ReplyType::kAck;
  // kWelcome, kAck: all blocks below are durable (where `live`: taken).
  uint64_t next = 0;
  // kWelcome.
  uint16_t version = kProtocolVersion;
  bool live = false;       // the receiver keeps nothing
  uint32_t max_frame = 0;  // bytes of the largest frame it takes
  // kRefuse.
  RefuseReason reason{};
  std::string text = {};  // for people; at most 512 bytes
};

std::string EncodeReply(const Reply& reply);

// Takes the first reply off `bytes`: nothing if it is not whole yet, kCorrupt
// if it cannot be one. Unknown types are skipped.
Result<std::optional<Reply>> TakeReply(std::string& bytes);

}  // namespace tracefs::net
