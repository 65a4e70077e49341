// What a command prints about traces besides their operations: what they say
// of themselves, counts, and at the end what was lost.
#ifndef TRACEFS_TOOLS_TRACE_SUMMARY_H_
#define TRACEFS_TOOLS_TRACE_SUMMARY_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tracefs/event/op.h"
#include "tracefs/export/exporter.h"
#include "tracefs/format/record.h"
#include "tracefs/format/trace_reader.h"

namespace tracefs {

// The description of a trace whose first block was read, for people.
std::string DescribeTrace(const format::TraceReader& trace, TimeStyle style);
// The same as one JSON object and a newline.
std::string DescribeTraceAsJson(const format::TraceReader& trace);

// Counts per operation.
class OpStats {
 public:
  void Add(const format::Record& record);
  // A table for people, and one JSON object a line. Both end with what the
  // traces lost.
  std::string Table(const std::vector<const format::ReadStats*>& traces) const;
  std::string JsonLines(
      const std::vector<const format::ReadStats*>& traces) const;

 private:
  struct Row {
    uint64_t count = 0;
    uint64_t before = 0;  // about to run; not in count
    uint64_t errors = 0;
    uint64_t bytes = 0;  // read and written
    uint64_t timed = 0;  // operations with a duration
    uint64_t total_ns = 0;
    uint64_t max_ns = 0;
  };
  static Row Sum(const std::array<Row, kOpCount>& rows);

  std::array<Row, kOpCount> rows_{};
};

// Keeps the first reports about a trace for the end; counts the rest.
class ReportKeeper {
 public:
  static constexpr size_t kMaxKept = 20;

  void Add(const format::Report& report);
  // One line per finding, each after `prefix`, then one that sums up. Empty if
  // there is nothing to say.
  std::string Text(const std::string& prefix,
                   const format::ReadStats& stats) const;

 private:
  std::vector<std::string> kept_;
  uint64_t left_out_ = 0;
};

}  // namespace tracefs

#endif  // TRACEFS_TOOLS_TRACE_SUMMARY_H_
