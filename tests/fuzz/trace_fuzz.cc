// Any bytes as a trace: reading, decoding and printing must not crash, hang or
// allocate without bound, and must account for every byte.
//
// The first byte says what the others are, because a changed byte would
// otherwise seldom get past a CRC: 'R', a trace whose CRCs are put right first;
// 'B', the messages of a block; anything else belongs to a trace as it is.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "tests/fuzz/fuzzed_trace.h"
#include "tests/fuzz/structured_trace.h"
#include "tracefs/export/table.h"
#include "tracefs/format/block_decoder.h"
#include "tracefs/format/trace_merger.h"
#include "tracefs/reader/report_keeper.h"
#include "tracefs/tools/dump/trace_summary.h"

namespace {

using namespace tracefs;          // NOLINT: a fuzz target
using namespace tracefs::format;  // NOLINT

class NullOutput final : public OutputBuffer {
 protected:
  Status Emit(std::string_view) override { return {}; }
};

void Require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string trace =
      fuzz::MakeTrace({reinterpret_cast<const char*>(data), size});
  // Small reads, so that frames straddle them.
  TraceMerger merger(/*memory_bytes=*/size_t{1} << 16);
  ReportKeeper reports;
  uint64_t report_bytes = 0;
  TraceReaderOptions options;
  options.name = "input";
  options.report = [&](const Report& report) {
    reports.Add(report);
    report_bytes += report.Text().size();
  };
  merger.Add(std::make_unique<TraceReader>(
      std::make_unique<MemorySource>(AsBytes(trace), 1000),
      std::move(options)));

  NullOutput out;
  const auto text =
      FindExportFormat("text")->make(out, {.time = TimeStyle::kUtc});
  const auto jsonl = FindExportFormat("jsonl")->make(out, {});
  query::Grouping operations(OpStats::Question());
  Record record;
  PathBuffer buffer;
  PathBuffer other;
  uint64_t records = 0;
  while (merger.Next(&record) == ReadStep::kItem) {
    ++records;
    text->Write(record);
    jsonl->Write(record);
    operations.AddRecord(record, 0);
    Require(format::PathOf(record, buffer) ==
                tracefs::PathOf(record.event, other) ||
            record.HasText(Field::kPath));
  }
  const ReadStats& stats = merger.reader(0).stats();
  Require(stats.bytes <= trace.size());
  if (merger.status(0).ok()) {
    Require(stats.ended);
    Require(stats.events == records);
    Require(stats.bytes == trace.size());
    Require(stats.damaged_bytes + stats.cut_bytes <= trace.size());
  }
  Require(reports.Text("", stats).size() < 100'000);
  (void)DescribeTrace(merger.reader(0), TimeStyle::kUtc);
  (void)DescribeTraceAsJson(merger.reader(0));
  OpStats counts;
  counts.TakeOperations(&operations);
  (void)counts.Table({&stats});
  (void)counts.JsonLines({&stats});
  (void)out.Flush();
  return 0;
}

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size,
                                          size_t max, unsigned seed) {
  return tracefs::fuzz::MutateTrace(data, size, max, seed);
}
