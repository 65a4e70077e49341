// What a command prints about traces besides their operations: what they say
// of themselves, counts, and at the end what was lost.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
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
  // What a tracer has counted instead; `trace` is the number of the trace.
  void AddCounts(size_t trace, const format::AggregateRecord& record);
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
  // The columns of keys without an operation, and of all other keys.
  static constexpr size_t kNoOp = kOpCount;
  using Rows = std::array<Row, kOpCount + 1>;
  struct Counted {
    Rows periods{};
    Rows total{};  // of the whole trace; has all the others
    bool has_total = false;
    const Rows& rows() const { return has_total ? total : periods; }
  };
  // Trace, tracer, and which one of its aggregate drivers.
  using CountedBy = std::tuple<size_t, uint32_t, uint32_t>;
  // More are hostile.
  static constexpr size_t kMaxCounted = 1000;

  static Row Sum(const Rows& rows);
  static std::string Table(std::string_view head, const Rows& rows);
  static void AddJson(const Rows& rows, const std::string& more,
                      std::string* text);

  Rows rows_{};
  std::map<CountedBy, Counted> counted_;
};

}  // namespace tracefs
