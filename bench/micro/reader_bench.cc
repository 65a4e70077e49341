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
#include "tracefs/reader/tracefs_reader.h"

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

// --- The C interface: events one by one, and columns by block with threads.

tracefs_reader* OpenSample(tracefs_options* options) {
  tracefs_options_add_memory(options, SampleTrace().data(),
                             SampleTrace().size(), "sample");
  return tracefs_reader_open(options);
}

void BM_ReadEvents(benchmark::State& state) {
  for (auto _ : state) {
    tracefs_options* const options = tracefs_options_new();
    tracefs_reader* const reader = OpenSample(options);
    const tracefs_event* event;
    uint64_t events = 0;
    uint64_t sum = 0;
    while (tracefs_reader_next(reader, &event) == TRACEFS_ITEM) {
      uint64_t time = 0;
      tracefs_event_number(event, TRACEFS_FIELD_TIME, &time);
      sum += time;
      ++events;
    }
    benchmark::DoNotOptimize(sum);
    if (events != kSampleOperations) state.SkipWithError("lost some");
    tracefs_reader_close(reader);
    tracefs_options_free(options);
  }
  SetRates(state);
}
BENCHMARK(BM_ReadEvents)->Unit(benchmark::kMillisecond);

// Arguments: threads, and which columns. Real time: the threads are others.
void BM_ReadColumns(benchmark::State& state) {
  const char* const columns =
      state.range(1) == 0 ? "ts,op,dur" : "ts,op,dur,pid,uid,path,size,errno";
  for (auto _ : state) {
    tracefs_options* const options = tracefs_options_new();
    tracefs_options_set(options, TRACEFS_FILE_ORDER, 1);
    tracefs_options_set(options, TRACEFS_THREADS,
                        static_cast<uint64_t>(state.range(0)));
    tracefs_reader* const reader = OpenSample(options);
    ArrowArrayStream stream;
    tracefs_reader_columns(reader, columns, &stream);
    ArrowArray array;
    int64_t rows = 0;
    while (stream.get_next(&stream, &array) == 0 && array.release != nullptr) {
      rows += array.length;
      array.release(&array);
    }
    if (rows != int64_t{kSampleOperations}) state.SkipWithError("lost some");
    stream.release(&stream);
    tracefs_reader_close(reader);
    tracefs_options_free(options);
  }
  SetRates(state);
}
BENCHMARK(BM_ReadColumns)
    ->ArgsProduct({{1, 2}, {0, 1}})
    ->UseRealTime()
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tracefs::bench
