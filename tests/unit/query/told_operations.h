// Operations as a test tells them, put through a trace to an analysis.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string_view>
#include <vector>

#include "tests/support/read_records.h"
#include "tests/support/trace_builder.h"
#include "tracefs/query/analyses.h"

namespace tracefs::query {

struct ToldOperation {
  uint64_t since_ns = 0;  // since the first one
  uint64_t ns = 0;
  uint32_t pid = 1;
  uint64_t bytes = 0;
  size_t trace = 0;       // each of a machine of its own
  bool inferred = false;  // who did it had to be guessed
  bool timed = true;      // its duration is known
};

// Of reads, in the order of their times, as each analysis gets them.
inline std::vector<Table> AskOf(Analysis* analysis,
                                const std::vector<ToldOperation>& all) {
  test::TraceBuilder trace;
  for (const ToldOperation& told : all) {
    Event event;
    event.op = Op::read_;
    event.Set(Field::kTime, test::TraceBuilder::kMonotonicNs + told.since_ns);
    event.Set(Field::kInode, 1);
    event.Set(Field::kPid, told.pid);
    if (told.inferred) event.Set(Field::kInferred, 1);
    if (told.timed) event.Set(Field::kLatency, told.ns);
    event.SetResult(static_cast<int64_t>(told.bytes), 0);
    trace.Add(event);
  }
  trace.EndBlock();
  auto told = all.begin();
  std::vector<format::TraceContext> traces(2);
  for (size_t i = 0; i < traces.size(); ++i) {
    const auto number = static_cast<uint32_t>(i + 1);
    traces[i].origin = {.machine = number, .mount = number};
  }
  test::ReadRecords(trace.bytes(), [&](format::Record& record) {
    const size_t number = (told++)->trace;
    record.trace = &traces.at(number);
    analysis->Take(record, number);
  });
  return analysis->Finish();
}

inline uint64_t NumberAt(const Table& table, size_t row,
                         std::string_view column) {
  for (size_t i = 0; i < table.columns.size(); ++i) {
    if (table.columns[i].name == column) return table.rows.at(row)[i].number;
  }
  ADD_FAILURE() << "no column " << column;
  return 0;
}

}  // namespace tracefs::query
