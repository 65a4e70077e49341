// Numbers of the trace format; FORMAT.md is the specification and cites these
// names. A change of meaning needs a new kFormatVersion there and a new folder
// under tests/golden/.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "tracefs/event/op.h"

namespace tracefs::format {

inline constexpr uint16_t kFormatVersion = 1;
inline constexpr uint16_t kMinReaderVersion = 1;

// --- Preamble: plaintext, at offset 0 of every trace.
inline constexpr std::string_view kPreambleMagic = "TRACEFS\n";
// magic 8, length 4, versions 2 + 2, serial 16, chain length 2, reserved 2;
// then the chain text and, last, crc 4.
inline constexpr size_t kPreambleFixedBytes = 36;
inline constexpr size_t kMinPreambleBytes = kPreambleFixedBytes + 4;
inline constexpr size_t kMaxPreambleBytes = size_t{64} << 10;

// --- Block frame: what is written, verified, lost and recovered as a whole.
inline constexpr std::array<char, 4> kFrameMagic = {'T', 'F', 'B', '\x1a'};
inline constexpr size_t kSerialBytes = 16;
// magic 4, payload length 4, sequence 8, serial 16, kind 2, reserved 2, crc 4
inline constexpr size_t kFrameHeaderBytes = 40;
// No writer makes a larger payload; a reader that sees one sees damage.
inline constexpr size_t kMaxPayloadBytes = size_t{64} << 20;
using Serial = std::array<std::byte, kSerialBytes>;
// What a payload is. Readers skip kinds they do not know.
enum class FrameKind : uint16_t {
  kMessages = 1,   // a block
  kPart = 16,      // marks.h: the file is a part of a rotated trace
  kPartEnd = 17,   // the trace goes on in the next part
  kSnapshot = 18,  // the file is what a flight recorder held
};

// --- Messages: msg_id 2, length 4 (of the whole message), arguments.
inline constexpr size_t kMessageHeaderBytes = 6;
// A BLOCK message: always as long as this, so that it can be written last.
inline constexpr size_t kBlockInfoBytes = 72;
// Highest bit of an argument id: a 32-bit length follows the id.
inline constexpr uint16_t kHasLength = 0x8000;

enum class MessageId : uint16_t {
  kStart = 1,       // header: first message of block 0
  kBlock = 2,       // first message of every other block
  kLoss = 3,        // what was not kept
  kFinal = 4,       // totals and end reason; its absence means "cut"
  kDefPath = 5,     // a path id of this block
  kDefProcess = 6,  // a process id of this block
  kChange = 7,      // the tracer was changed while it ran
  kAggregate = 8,   // what was counted for one key
  kAlarm = 9,       // a rule of the config fired
  // ProcessRecord::Kind, in its order.
  kProcessFork = 10,
  kProcessExec = 11,
  kProcessExit = 12,
  kProcessComm = 13,
  kProcessPipes = 14,
  kProcessRunning = 15,
  kState = 16,               // what a file was: state_message.h
  kFile = 17,                // what a file holds: embedded_file.h
  kIndex = 18,               // what was worked out of the trace: index_piece.h
  kOperation = 0x100,        // + Op number: the operation, when it is done
  kBeforeOperation = 0x200,  // + Op number: the operation about to run
};

inline constexpr uint16_t OperationMessage(Op op, bool before) {
  return static_cast<uint16_t>(
      static_cast<uint16_t>(before ? MessageId::kBeforeOperation
                                   : MessageId::kOperation) +
      Index(op));
}

// The inverse: the operation of a message id, or nothing if it is not that of
// an operation this version knows.
inline std::optional<Op> OperationOf(uint16_t msg_id, bool* before) {
  constexpr auto kDone = static_cast<uint16_t>(MessageId::kOperation);
  constexpr auto kBefore = static_cast<uint16_t>(MessageId::kBeforeOperation);
  *before = msg_id >= kBefore;
  const uint16_t number = msg_id - (*before ? kBefore : kDone);
  if (msg_id < kDone || number >= kOpCount) return std::nullopt;
  return static_cast<Op>(number);
}

// Argument ids that are not fields of an operation (those are in
// tracefs/event/field.h, below 128).
enum class ArgId : uint16_t {
  // Coarser time stamps instead of ARG_TIME_NS.
  kTimeSec = 128,   // u32
  kTimeUsec = 129,  // u64
  // References into the definitions of the same block; u32, 0 = none.
  kPathId = 130,           // the file
  kParentPathId = 131,     // the directory of ARG_NAME
  kNewParentPathId = 132,  // the directory of ARG_NEW_NAME
  kProcessId = 133,
  kStartTime = 134,  // u64, of a process, clock ticks since boot
  // kBlock, kLoss, kFinal and kStart.
  kClockMonotonic = 140,  // u64 ns; with the next one: a clock pair
  kClockReal = 141,       // u64 ns since the epoch
  kFirstTime = 142,       // u64 ns monotonic: earliest begin in the block
  kLastTime = 143,        // u64
  kWatermark = 144,   // u64: no later block holds an event that began before
  kEventCount = 145,  // u64: operation messages in this block
  kLossCount = 146,   // u64
  kLossReason = 147,  // text: a LossReason's name
  kOpTotal = 148,     // bytes: u16 message id, u64 count
  kLossTotal = 149,   // bytes: u64 count, reason text
  kEndReason = 150,   // text
  kTracerId = 151,    // u32
  kBlockCount = 152,  // u64
  // Self-description, in kStart.
  kMessageName = 160,   // bytes: u16 message id, name
  kArgumentName = 161,  // bytes: u16 arg id, u16 width (0 = variable), u8 type,
                        // name
  kProperty = 162,  // bytes: key, '=', value; "host.name=…", "filter.text=…"
  // kAggregate; histograms are bytes: u16 bucket, u64 count, and again.
  kAggregate = 170,       // u32: which of the tracer's aggregate drivers
  kAggregateTotal = 171,  // u8: 1 = since the trace began
  kKeyOp = 172,           // u8: Op number
  kDirectory = 173,       // text: the directory a file is in, or its beginning
  kOther = 174,           // u8: 1 = what has no message of its own
  kCount = 175,           // u64
  kCountMissed = 176,     // u64
  kErrorCount = 177,      // u64
  kByteCount = 178,       // u64
  kLatencySum = 179,      // u64 ns
  kLatencyMax = 180,      // u64 ns
  kLatencyHistogram = 181,
  kSizeMax = 182,  // u64
  kSizeHistogram = 183,
  // kAlarm, besides the arguments of the operation that made the rule fire.
  kRule = 184,         // u32: its number, from 1
  kRuleTitle = 185,    // text
  kRuleKey = 186,      // text: what is counted apart by
  kRuleLimit = 187,    // u64: it fires beyond so many
  kRuleWindow = 188,   // u64 ns
  kRuleWindows = 189,  // u64: successive ones
  kRuleAction = 190,   // text, repeats: what was done, and how that ended
  kKeyPid = 191,       // u32: the process on top, where trees are counted
  // Written by tracefs-anon, which also describes it.
  kSealedName = 192,  // bytes: a name whose token would be too long for a name
  // Of processes (process_message.h), besides those of operations.
  kNsPid = 193,       // u32: pid in the process's own pid namespace
  kChildPid = 194,    // u32
  kChildStart = 195,  // u64, clock ticks since boot
  kChildTid = 196,    // u32
  kChildNsPid = 197,  // u32
  kCloneFlags = 198,  // u64
  kProgram = 199,     // text: what was to be run
  kCwd = 200,         // text
  kArgv = 201,        // bytes: arguments, each ending with a NUL
  kEnviron = 202,     // bytes: likewise
  kExitCode = 203,    // u32
  kExitSignal = 204,  // u32
  kCoreDumped = 205,  // u8
  kPipes = 206,       // bytes: u32 descriptor, u64 inode, u8 access, and again
  kCpu = 207,         // u32
  kProcessSource = 208,  // u8
  kReadLate = 209,       // u8
  kIncomplete = 210,     // u8
  // Of states (state_message.h), besides those of operations and the last two.
  kStateKind = 211,   // u8: 0 = at the first touch, 1 = at the end
  kXattrs = 212,      // bytes: u32 length, name, u32 length, value, and again
  kDataRanges = 213,  // bytes: u64 offset, u64 length, and again
  // kAlarm, too: who did it, found out when the rule had fired.
  kAncestorPid = 214,   // u32, repeats: from the parent up
  kAncestorComm = 215,  // text: of the ancestor named last
  kRecentPath = 216,    // text, repeats: newest first
  kNotKnown = 217,      // text, repeats: what could not be found out
  // kFile, besides kPath and numbers of the file as those of operations.
  kContentHash = 218,  // bytes: SHA-256 of what it holds
  kContent = 219,      // bytes: that
  kContentSure = 220,  // u8: whether it held that when it was read
  kLeftOut = 221,      // text: why its contents are not there
  // kIndex, besides kBlockCount and kEventCount.
  kIndexOf = 222,       // text: what it answers, and in which form
  kIndexSection = 223,  // u8
  kIndexPiece = 224,    // u32: of the section, from 0
  kIndexPieces = 225,   // u32
  kIndexBytes = 226,    // u64: of the trace before its first block
  kIndexLink = 227,     // u32: of the frames there, as the link of a part
  kIndexData = 228,     // bytes
};

}  // namespace tracefs::format
