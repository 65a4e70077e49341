// Exporter: writes records in a foreign format. One file per format; the table
// of them is in table.h.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/export/columns.h"
#include "tracefs/export/output_buffer.h"
#include "tracefs/format/record.h"

namespace tracefs {

enum class TimeStyle : uint8_t {
  kLocal,  // HH:MM:SS.uuuuuu in the reader's time zone
  kUtc,
  kEpoch,  // seconds.nanoseconds since 1970
};

// How times are written for people.
enum class TimeForm : uint8_t {
  kClock,     // 14:03:07.123456
  kDate,      // 2026-01-02 14:03:07.123456
  kIso,       // 2026-01-02T14:03:07.123456789+01:00 (RFC 3339)
  kEpoch,     // 1767362587.123456789
  kNs,        // 1767362587123456789
  kRelative,  // 0.000012345: seconds since the first operation that is shown
  kDelta,     // the same since the one before
};

struct ExportOptions {
  TimeStyle time = TimeStyle::kLocal;  // of the text format
  TimeForm form = TimeForm::kClock;
  bool form_given = false;  // somebody asked for it
  // Of formats that are tables; empty: their own choice.
  std::vector<const Column*> columns = {};
  // Choices of one format, as its row declares them; checked.
  std::map<std::string, std::string, std::less<>> choices = {};
  // What formats make that write files themselves.
  std::string path = {};

  // The value of a choice; "" if it was not made.
  std::string_view Choice(std::string_view name) const {
    const auto found = choices.find(name);
    return found == choices.end() ? std::string_view() : found->second;
  }
};

// What there is to say about the whole once all was read.
struct ExportSummary {
  std::vector<const format::TraceContext*> traces;
  std::string filter;  // only operations that it keeps were written; or empty
};

// Used by one thread. Failures of the output stay in its status(). The traces
// of its records outlive Finish().
class Exporter {
 public:
  virtual ~Exporter() = default;
  virtual void Write(const format::Record& record) = 0;
  // What was counted; nothing, in formats that have no place for it.
  virtual void WriteAggregate(const format::AggregateRecord& /*record*/) {}
  // What says that a rule has fired, with its line end; empty in formats that
  // have no place for it. Whoever reads the trace knows when it is due.
  virtual std::string AlarmLine(const format::AlarmRecord& /*record*/) {
    return {};
  }
  // The same, written now.
  virtual void WriteAlarm(const format::AlarmRecord& /*record*/) {}
  // What happened to a process, in its place among the operations; nothing, in
  // formats that have none for it.
  virtual void WriteProcess(const ProcessRecord& /*record*/) {}
  // Before Finish, where it is known.
  virtual void Summarize(const ExportSummary& /*summary*/) {}
  // After the last record.
  virtual void Finish() {}
  // Operations that the format has no place for.
  virtual uint64_t left_out() const { return 0; }
  // Why nothing more can be written, of formats that write files themselves.
  virtual Status status() const { return {}; }
};

}  // namespace tracefs
