// Record: one operation as a trace tells it. What readers hand out.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/base/time_window.h"
#include "tracefs/event/event.h"
#include "tracefs/format/aggregate.h"
#include "tracefs/format/alarm.h"
#include "tracefs/format/embedded_file.h"
#include "tracefs/format/index_piece.h"
#include "tracefs/format/message_cursor.h"
#include "tracefs/format/process_message.h"
#include "tracefs/format/report.h"
#include "tracefs/format/state_message.h"
#include "tracefs/format/trace_header.h"

namespace tracefs::format {

class BlockDecoder;

// A process as the trace has told of it so far.
struct KnownProcess {
  static constexpr size_t kMost = 65536;  // of a trace; others are not kept

  uint32_t ppid = 0;
  std::string comm;
};
using KnownProcesses = std::map<uint32_t, KnownProcess>;

// Whose a trace is: numbers of processes are a machine's own, numbers and names
// of files a mount's. Among traces that are read together, those of one
// machine, or mount, have one number; 0: nobody has looked
// (reader/trace_origins.h).
struct TraceOrigin {
  uint32_t machine = 0;
  uint32_t mount = 0;
};

// What all blocks of a trace share.
struct TraceContext {
  std::string name;  // of the input, for messages
  TraceOrigin origin;
  SelfDescription description;
  // What its header says of system calls; by number.
  std::map<uint32_t, std::string> calls;
  // By pid; who began it, where that was told. Traces of one machine that are
  // read together share them.
  std::shared_ptr<KnownProcesses> processes =
      std::make_shared<KnownProcesses>();
  ArgumentWidths widths;  // of this version and of the description
  ReadStats stats;
  ReportSink report;  // may be empty
  // Gets what was counted, block by block as they are opened; may be empty.
  AggregateSink aggregate;
  AlarmSink alarm;  // the same of alarms
  // Gets process records in their order among the operations; may be empty.
  ProcessRecordSink process;
  // Gets states of files, block by block as they are opened; may be empty.
  StateSink state;
  // The same of files that the trace embeds, and of its index.
  EmbeddedFileSink file;
  IndexSink index;
  // Operations that are to be decoded, a bit each; others are counted and
  // passed over.
  uint64_t wanted_ops = UINT64_MAX;

  // The names the trace gives, else those of this version, else the numbers.
  std::string NameOfMessage(uint16_t msg_id) const;
  std::string NameOfArgument(uint16_t arg_id) const;
  // Of the machine that wrote it, else of this one: "openat", or empty.
  // Letters, digits and '_' only.
  std::string_view CallName(uint64_t number) const;

  // Blocks all of whose operations began before (since the epoch) are passed
  // over.
  uint64_t from_real_ns = 0;
  // Losses that lie outside (since the epoch) are neither counted nor told.
  TimeWindow loss_window;

  // Whether a message is an operation that is to be decoded.
  bool Wants(uint16_t msg_id) const {
    bool before;
    const std::optional<Op> op = OperationOf(msg_id, &before);
    return op && (wanted_ops >> Index(*op) & 1) != 0;
  }

  void Tell(const Report& r) const {
    if (report) report(r);
  }
};

// An argument that is not a field of this version, or a number that was
// replaced by opaque bytes.
struct ExtraArgument {
  uint16_t id = 0;
  bool has_length = false;
  ByteSpan value;
};

// How such an argument is to be shown, as far as the trace describes it.
struct ExtraValue {
  enum class Kind : uint8_t { kUnsigned, kSigned, kText, kBytes };
  Kind kind = Kind::kBytes;
  uint64_t number = 0;  // kSigned: sign-extended
};
ExtraValue Interpret(const TraceContext& trace, const ExtraArgument& extra);

// Views point into the block the record came from; they, and `event.caller`,
// are valid until the reader is asked for the next record.
struct Record {
  // Messages with more unknown arguments are hostile.
  static constexpr size_t kMaxExtra = 1024;

  Record() = default;
  Record(const Record&) = delete;
  Record& operator=(const Record&) = delete;

  // As the filter sees it; its resolver knows the paths of the block.
  // kTime is in ns of the monotonic clock, whatever the resolution;
  // kErrno is 0 where there is a result of success and no errno.
  Event event;
  CallerInfo caller;  // event.caller points here if the caller is known
  uint16_t msg_id = 0;
  uint32_t tracer_id = 0;
  // 1, 1000 or 1000000000; 0 = the message has no time (kTime is then absent).
  uint32_t time_resolution_ns = 0;
  // Begin time since the epoch, if there is a time: whole units of its
  // resolution.
  uint64_t real_ns = 0;
  uint32_t text_present = 0;  // bit per text field
  std::array<std::string_view, kTextFieldCount> text;
  std::vector<ExtraArgument> extra;
  const TraceContext* trace = nullptr;
  const BlockDecoder* block = nullptr;  // knows the paths

  static constexpr size_t TextIndex(Field f) {
    return Index(f) - kNumericFieldCount;
  }
  bool HasText(Field f) const { return (text_present >> TextIndex(f)) & 1; }
  std::string_view Text(Field f) const {
    return HasText(f) ? text[TextIndex(f)] : std::string_view();
  }
};

// The bytes that stand for the number of a field; nullptr if none do.
const ExtraArgument* OpaqueValue(const Record& record, Field field);

// How an operation ended, as far as the record tells.
enum class Outcome : uint8_t { kUnknown, kSuccess, kFailure };
Outcome OutcomeOf(const Record& record);

}  // namespace tracefs::format
