// Exporter: writes records in a foreign format. One file per format; the table
// of them is in table.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tracefs/export/output_buffer.h"
#include "tracefs/format/record.h"

namespace tracefs {

enum class TimeStyle : uint8_t {
  kLocal,  // HH:MM:SS.uuuuuu in the reader's time zone
  kUtc,
  kEpoch,  // seconds.nanoseconds since 1970
};

struct ExportOptions {
  TimeStyle time = TimeStyle::kLocal;  // of the text format
  bool date = false;                   // text: before each time, but seconds
};

// Used by one thread. Failures of the output stay in its status().
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
  // After the last record.
  virtual void Finish() {}
};

}  // namespace tracefs
