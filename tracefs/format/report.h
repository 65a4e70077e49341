// Reports: what a reader found wrong, lost or unknown in a trace, told through
// a callback while it reads. FORMAT.md sections 2, 4 and 8.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "tracefs/format/block_info.h"
#include "tracefs/format/marks.h"

namespace tracefs::format {

enum class ReportKind : uint8_t {
  kDamaged,           // bytes that are not a block; offset, count = bytes
  kCut,               // the input ends within a block; offset, count = bytes
  kNoFinal,           // the input ends between blocks, but without FINAL
  kUnfinished,        // it ends without FINAL because it is still being written
  kNoHeader,          // block 0 is lost: the trace does not describe itself
  kGap,               // blocks are missing; number = the first, count;
                      // detail = the parts that had them, if that is known
  kDuplicate,         // a block seen before, skipped; number
  kUnknownFrame,      // a kind of block of a later version; number = kind
  kUndecodable,       // the output chain cannot be undone; number = block
  kMalformedBlock,    // a message length is a lie; number = block
  kMalformedMessage,  // an argument length is a lie; number = block
  kBadDefinition,     // an id out of order, skipped; number = block
  kUnknownMessage,    // first of its id; number = id
  kUnknownArgument,   // first of its id; number = id
  kLoss,              // the tracer says that it did not keep `count` operations
  kChange,            // the tracer was changed; detail = "property=value"
  kPart,       // begins with part `number`, `count` being its first block
  kGoesOn,     // ends in order with a part; number = the next one
  kSnapshot,   // of a flight recorder: number = operations in it, count
               // = overwritten ones; detail = what made it
  kUnordered,  // out of memory for merging: order is no longer sure
};

// One finding. Holds numbers and views only and lives as long as the call; its
// text is built when somebody asks.
struct Report {
  ReportKind kind{};
  uint64_t offset = 0;  // in the input, of the block or of the damage
  uint64_t number = 0;
  uint64_t count = 0;
  std::string_view detail{};  // why, or the name of what is unknown
  // kLoss: from when to when, since the epoch; 0: the trace does not say.
  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;

  // One line without a full stop, in words a user understands.
  std::string Text() const;
};

// Called by the thread that reads, at once. Must not call the reader.
using ReportSink = std::function<void(const Report&)>;

// What was read and what was not, by kind. Sizes are bounded: ids are 16 bits,
// and reasons beyond kMaxReasons are counted together.
struct ReadStats {
  static constexpr size_t kMaxReasons = 64;
  using Losses = std::map<std::string, uint64_t, std::less<>>;  // by reason
  // The count of that reason, or of all those that there is no room for.
  static uint64_t& CountOf(std::string_view reason, Losses* losses);

  uint64_t bytes = 0;   // of the input, so far
  uint64_t blocks = 0;  // accepted
  uint64_t events = 0;  // operation messages in them
  uint64_t damaged_ranges = 0;
  uint64_t damaged_bytes = 0;
  uint64_t cut_bytes = 0;
  uint64_t missing_blocks = 0;
  uint64_t duplicate_blocks = 0;
  uint64_t unknown_frames = 0;
  uint64_t undecodable_blocks = 0;
  uint64_t malformed_blocks = 0;
  uint64_t malformed_messages = 0;
  uint64_t bad_definitions = 0;
  uint64_t aggregates = 0;        // AGGREGATE messages
  uint64_t states = 0;            // STATE messages
  uint64_t files = 0;             // FILE messages
  uint64_t index_pieces = 0;      // INDEX messages
  uint64_t changes = 0;           // CHANGE messages
  uint64_t alarms = 0;            // ALARM messages
  uint64_t process_records = 0;   // PROCESS_… messages
  uint64_t lost_events = 0;       // by the tracer's own account (LOSS)
  uint64_t unordered_events = 0;  // listed after a later one
  // Operations without a time, which are in no window that was asked for.
  uint64_t timeless_events = 0;
  // For a rotated trace: the part that the input begins with, and the one after
  // that it ends with, if it ends with a whole part; else 0.
  uint64_t first_part = 0;
  uint64_t goes_on = 0;
  std::optional<SnapshotMark> snapshot;  // the input is one
  bool jumped = false;                   // not all of the input was to be read
  bool preamble_damaged = false;
  bool no_header = false;
  bool ended = false;  // the end of the input was reached
  Losses losses;
  // What the tracer still counted of those, by message id.
  std::map<uint16_t, uint64_t> lost_messages;
  std::map<uint16_t, uint64_t> unknown_messages;
  std::map<uint16_t, uint64_t> unknown_arguments;
  std::optional<FinalRecord> final_record;
  // Numeric fields, a bit each, of which opaque bytes stood where a number
  // belongs in what was decoded.
  uint64_t opaque = 0;

  // True if something that was recorded could not be read, or if the trace
  // says that something could not be recorded. A trace without FINAL counts,
  // unless it is a snapshot or goes on in another part; unknown messages do
  // not.
  bool Bad() const;

  // Adds what another reader found in other blocks of the same input.
  void AddBlocks(const ReadStats& other);

  // Operations that FINAL counts and the reader did not find; 0 without FINAL,
  // and where others are elsewhere by design, or were passed over.
  uint64_t MissingEvents() const;
};

}  // namespace tracefs::format
