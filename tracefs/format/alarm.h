// AlarmRecord: a rule of a config fired. Writer and reader of the ALARM
// message, FORMAT.md section 8b.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tracefs/base/bytes.h"
#include "tracefs/event/field.h"
#include "tracefs/event/op.h"
#include "tracefs/format/message_cursor.h"
#include "tracefs/format/message_writer.h"

namespace tracefs::format {

struct Record;
struct TraceContext;

// A process above the one that made a rule fire. No name: it is not known.
struct AlarmAncestor {
  uint32_t pid = 0;
  std::string_view comm;
};

// What a rule said, but for the operation that made it fire.
struct AlarmRecord {
  // More than any alarm has are hostile.
  static constexpr size_t kMaxActions = 64;
  static constexpr size_t kMaxAncestors = 64;
  static constexpr size_t kMaxPaths = 64;

  uint32_t rule = 0;  // its number among those of the tracer, from 1
  std::string_view title;
  // What operations are counted apart by: "pid", "tree", …; empty: nothing.
  // The value is that of the operation; of a tree it is the process on top.
  std::string_view key;
  uint32_t key_pid = 0;
  bool other = false;  // no key of its own: there were too many
  uint64_t count = 0;  // operations in the window that decided
  // It fires when there are more than `limit` of them in each of `windows`.
  uint64_t limit = 0;
  uint64_t window_ns = 0;
  uint64_t windows = 1;
  std::optional<Op> op;                   // that made it fire
  std::vector<std::string_view> actions;  // "snapshot 2: done"

  // What was found out when it had fired: the processes above, from the parent
  // up; the last paths that were touched there, newest first; and which of
  // "exe", "cmdline", "ancestors" (some of them) could not be found out, the
  // process having ended, say.
  std::vector<AlarmAncestor> ancestors = {};
  std::vector<std::string_view> paths = {};
  std::vector<std::string_view> not_known = {};

  // For readers; `operation` is that operation as far as it is known, and good
  // during the call.
  uint32_t tracer_id = 0;
  const Record* operation = nullptr;

  // "4711"; a command name as it is. Empty if the rule counts by nothing.
  std::string KeyValue() const;
};

// For writers: the values of the operation.
struct AlarmValues {
  std::vector<std::pair<Field, uint64_t>> numbers;
  std::vector<std::pair<Field, std::string>> texts;
};

// Takes what a reader finds; the views hold during the call.
using AlarmSink = std::function<void(const AlarmRecord&)>;

// False, and nothing written, if it does not fit.
bool WriteAlarm(MessageWriter& out, const AlarmRecord& record,
                const AlarmValues& values);

// Reads the arguments of an ALARM message that are not those of its operation;
// views point into them. False if they end within an argument.
bool ReadAlarm(ByteSpan arguments, const ArgumentWidths& widths,
               AlarmRecord* record);

// True of an argument that only ALARM has.
bool IsAlarmArgument(uint16_t arg_id);

}  // namespace tracefs::format
