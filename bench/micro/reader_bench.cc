// Reading a trace from memory. Workload: sample_trace.h. Unit: operations a
// second on one core (items_per_second). Baselines: the CRC of the same bytes,
// without which no reader can tell damage, and a walk over the messages that
// decodes nothing.
#include <benchmark/benchmark.h>

#include "bench/micro/sample_trace.h"
#include "tracefs/base/crc32c.h"
#include "tracefs/format/frame_reader.h"
#include "tracefs/format/message_cursor.h"
#include "tracefs/format/trace_merger.h"

namespace tracefs::bench {
namespace {

using namespace tracefs::format;  // NOLINT: a benchmark

void SetRates(benchmark::State& state) {
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()) *
                          static_cast<int64_t>(kSampleOperations));
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) *
                          static_cast<int64_t>(SampleTrace().size()));
}

void BM_BaselineCrc(benchmark::State& state) {
  const ByteSpan bytes = AsBytes(SampleTrace());
  for (auto _ : state) benchmark::DoNotOptimize(Crc32c(bytes));
  SetRates(state);
}
BENCHMARK(BM_BaselineCrc)->Unit(benchmark::kMillisecond);

void BM_BaselineWalk(benchmark::State& state) {
  for (auto _ : state) {
    ReadStats stats;
    const ReportSink report;
    FrameReader frames(std::make_unique<MemorySource>(AsBytes(SampleTrace())),
                       false, &stats, &report);
    if (!frames.ReadPreamble().ok()) state.SkipWithError("no trace");
    Frame frame;
    uint64_t messages = 0;
    while (*frames.Next(&frame) == ReadStep::kItem) {
      MessageCursor in(frame.payload);
      Message message;
      while (in.Next(&message)) ++messages;
    }
    benchmark::DoNotOptimize(messages);
  }
  SetRates(state);
}
BENCHMARK(BM_BaselineWalk)->Unit(benchmark::kMillisecond);

// Everything: frames, definitions, order, events.
void BM_ReadRecords(benchmark::State& state) {
  for (auto _ : state) {
    TraceMerger merger;
    merger.Add(std::make_unique<TraceReader>(
        std::make_unique<MemorySource>(AsBytes(SampleTrace())),
        TraceReaderOptions{}));
    Record record;
    uint64_t records = 0;
    while (merger.Next(&record) == ReadStep::kItem) ++records;
    if (records != kSampleOperations) state.SkipWithError("lost some");
  }
  SetRates(state);
}
BENCHMARK(BM_ReadRecords)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tracefs::bench
