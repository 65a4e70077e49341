// Exporter: writes records in a foreign format. One file per format; the table
// of them is in table.h.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/export/columns.h"
#include "tracefs/format/record.h"
#include "tracefs/text/output_buffer.h"
#include "tracefs/text/time_text.h"

namespace tracefs {

struct ExportOptions {
  TimeStyle time = TimeStyle::kLocal;  // of the text format
  TimeForm form = TimeForm::kClock;
  bool form_given = false;  // somebody asked for it
  // For formats that are tables; empty: their own choice.
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

// What a trace has and a format had no place for.
struct LeftOut {
  uint64_t operations = 0;
  uint64_t processes = 0;  // records of what happened to processes
  uint64_t counted = 0;    // groups of operations that a tracer counted
  uint64_t alarms = 0;

  // Each kind there is: "process_records", how many.
  std::vector<std::pair<std::string_view, uint64_t>> Kinds() const;
  // "12 operations and 3 process records"; empty where nothing was left out.
  std::string Text() const;
};

// Used by one thread. Failures of the output stay in its status(). The traces
// of its records outlive Finish().
class Exporter {
 public:
  virtual ~Exporter() = default;
  virtual void Write(const format::Record& record) = 0;
  // What was counted. Formats that have no place for it, or for what follows,
  // leave it out: LeftOutSoFar() tells.
  virtual void WriteAggregate(const format::AggregateRecord& /*record*/) {
    ++others_.counted;
  }
  // What says that a rule has fired, with its line end; empty in formats that
  // have no place for it. Whoever reads the trace knows when it is due.
  virtual std::string AlarmLine(const format::AlarmRecord& /*record*/) {
    ++others_.alarms;
    return {};
  }
  // The same, written now.
  virtual void WriteAlarm(const format::AlarmRecord& /*record*/) {
    ++others_.alarms;
  }
  // What happened to a process, in its place among the operations.
  virtual void WriteProcess(const ProcessRecord& /*record*/) {
    ++others_.processes;
  }
  // Before Finish, where it is known.
  virtual void Summarize(const ExportSummary& /*summary*/) {}
  // After the last record.
  virtual void Finish() {}
  // Operations that the format has no place for.
  virtual uint64_t left_out() const { return 0; }
  // Why nothing more can be written, of formats that write files themselves.
  virtual Status status() const { return {}; }

  LeftOut LeftOutSoFar() const {
    LeftOut all = others_;
    all.operations = left_out();
    return all;
  }

 private:
  LeftOut others_;
};

}  // namespace tracefs
