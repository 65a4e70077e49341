// What a command prints about traces besides their operations: what they say
// of themselves, counts, and at the end what was lost.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "tracefs/export/exporter.h"
#include "tracefs/format/trace_reader.h"
#include "tracefs/query/grouping.h"

namespace tracefs {

// The description of a trace whose first block was read, for people.
std::string DescribeTrace(const format::TraceReader& trace, TimeStyle style);
// The same as one JSON object and a newline.
std::string DescribeTraceAsJson(const format::TraceReader& trace);

// What --stats prints: what was asked of operations (Question), what tracers
// have counted by themselves, and what was lost.
class OpStats {
 public:
  static query::GroupSpec Question();
  // The answer. Once.
  void TakeOperations(query::Grouping* answer);
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
  // Operations of one kind, or counted under one key.
  struct Line {
    std::string name;     // for people
    std::string members;  // the same for JSON
    query::Row values;    // of Question
  };
  struct Lines {
    std::vector<Line> all;
    query::Row total;
  };
  // What a driver has counted by its keys, and all of it.
  class Counted {
   public:
    // Keys; more are one: "(other)".
    static constexpr size_t kMost = 100'000;

    void Add(const format::AggregateRecord& record, bool both_files);
    Lines Answer() const;

   private:
    struct Key {
      std::string name;
      std::string members;
      query::Tally tally;
    };
    std::map<std::string, size_t, std::less<>> places_;  // by `name`
    std::vector<Key> keys_;
    query::Tally total_;
  };
  struct Driver {
    Counted periods;
    Counted total;  // of the whole trace; has all the others
    bool has_total = false;
    bool maybe_twice = false;  // what of `bytes` copies moved is not known
    const Counted& counted() const { return has_total ? total : periods; }
  };
  // Trace, tracer, and which one of its aggregate drivers.
  using DriverName = std::tuple<size_t, uint32_t, uint32_t>;
  // More are hostile.
  static constexpr size_t kMaxDrivers = 1000;

  static std::string Table(std::string_view head, const Lines& lines);
  static void AddJson(const Lines& lines, const std::string& more,
                      std::string* text);

  Lines operations_;
  std::map<DriverName, Driver> drivers_;
  bool too_many_ = false;  // drivers: some are not in drivers_
};

}  // namespace tracefs
