// Exporter: writes records in a foreign format. One file per format; the table
// of them is in table.h.
#ifndef TRACEFS_EXPORT_EXPORTER_H_
#define TRACEFS_EXPORT_EXPORTER_H_

#include <cstdint>
#include <memory>

#include "tracefs/export/output_buffer.h"
#include "tracefs/format/record.h"

namespace tracefs {

enum class TimeStyle : uint8_t {
  kLocal,  // HH:MM:SS.uuuuuu in the time zone of who reads
  kUtc,
  kEpoch,  // seconds.nanoseconds since 1970
};

struct ExportOptions {
  TimeStyle time = TimeStyle::kLocal;  // of the text format
};

// Used by one thread. Failures of the output stay in its status().
class Exporter {
 public:
  virtual ~Exporter() = default;
  virtual void Write(const format::Record& record) = 0;
  // What was counted; nothing, in formats that have no place for it.
  virtual void WriteAggregate(const format::AggregateRecord& /*record*/) {}
  // After the last record.
  virtual void Finish() {}
};

}  // namespace tracefs

#endif  // TRACEFS_EXPORT_EXPORTER_H_
