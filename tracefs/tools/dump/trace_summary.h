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
#include "tracefs/tally/sums.h"

namespace tracefs {

// The description of a trace whose first block was read, for people.
std::string DescribeTrace(const format::TraceReader& trace, TimeStyle style);
// The same as one JSON object and a newline.
std::string DescribeTraceAsJson(const format::TraceReader& trace);

// Counts per operation.
class OpStats {
 public:
  void Add(const format::Record& record);
  // What a tracer has counted instead; `trace` is the number of the trace,
  // both_files: copies count for both of their files where keys are about
  // files.
  void AddCounts(size_t trace, const format::AggregateRecord& record,
                 bool both_files);
  // A table for people, and one JSON object a line. Both end with what the
  // traces lost.
  std::string Table(const std::vector<const format::ReadStats*>& traces) const;
  std::string JsonLines(
      const std::vector<const format::ReadStats*>& traces) const;

 private:
  struct Row : tally::TimedSums {
    uint64_t before = 0;  // about to run; not in count
    uint64_t twice = 0;   // of bytes: of copies, told under both files
  };
  // A line of a table: operations of one kind, or counted under one key.
  struct Line {
    std::string name;     // for people
    std::string members;  // the same for JSON, a comma after it
    Row row;
  };
  class Lines {
   public:
    // More are one: "(other)".
    static constexpr size_t kMost = 100'000;

    Row& At(const format::AggregateRecord& record);
    const std::vector<Line>& all() const { return lines_; }

   private:
    std::map<std::string, size_t, std::less<>> places_;  // by `name`
    std::vector<Line> lines_;
  };
  struct Counted {
    Lines periods;
    Lines total;  // of the whole trace; has all the others
    bool has_total = false;
    bool maybe_twice = false;  // what of `bytes` copies moved is not known
    const Lines& lines() const { return has_total ? total : periods; }
  };
  // Trace, tracer, and which one of its aggregate drivers.
  using CountedBy = std::tuple<size_t, uint32_t, uint32_t>;
  // More are hostile.
  static constexpr size_t kMaxCounted = 1000;

  static Row Sum(const std::vector<Line>& lines);
  static std::string Table(std::string_view head,
                           const std::vector<Line>& lines);
  static void AddJson(const std::vector<Line>& lines, const std::string& more,
                      std::string* text);
  std::vector<Line> OfOperations() const;

  std::array<Row, kOpCount> rows_{};
  std::map<CountedBy, Counted> counted_;
  bool too_many_ = false;  // drivers: some are not in counted_
};

}  // namespace tracefs
