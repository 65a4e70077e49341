// From a trace in memory to each format of tracefs-dump, with reading and
// decoding: what --format NAME costs but for reading the file. Workload:
// sample_trace.h. Unit: operations a second on one core (items_per_second);
// bytes/op is what an operation takes in the export. Baseline: BM_Decode, which
// writes nothing. jsonl and text are in jsonl_bench.
#include <benchmark/benchmark.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "bench/micro/sample_trace.h"
#include "tracefs/export/table.h"
#include "tracefs/format/byte_source.h"
#include "tracefs/format/trace_merger.h"

namespace tracefs::bench {
namespace {

using format::ReadStep;
using format::Record;

// Counts and forgets.
class NullOutput final : public OutputBuffer {
 public:
  uint64_t bytes() const { return bytes_; }

 protected:
  Status Emit(std::string_view text) override {
    bytes_ += text.size();
    return {};
  }

 private:
  uint64_t bytes_ = 0;
};

// `finish` is called before the traces go.
template <typename Write, typename Finish>
uint64_t ForEachRecord(Write write, Finish finish) {
  format::TraceMerger merger;
  merger.Add(std::make_unique<format::TraceReader>(
      std::make_unique<format::MemorySource>(AsBytes(SampleTrace())),
      format::TraceReaderOptions{}));
  Record record;
  uint64_t records = 0;
  while (merger.Next(&record) == ReadStep::kItem) {
    write(record);
    ++records;
  }
  finish();
  return records;
}

void SetRates(benchmark::State& state, uint64_t bytes) {
  const auto operations = static_cast<double>(state.iterations()) *
                          static_cast<double>(kSampleOperations);
  state.SetItemsProcessed(static_cast<int64_t>(operations));
  state.counters["bytes/op"] = static_cast<double>(bytes) / operations;
}

void BM_Decode(benchmark::State& state) {
  for (auto _ : state) {
    ForEachRecord([](const Record& r) { benchmark::DoNotOptimize(r.real_ns); },
                  [] {});
  }
  SetRates(state, 0);
}
BENCHMARK(BM_Decode)->Unit(benchmark::kMillisecond);

uint64_t BytesBelow(const std::string& path) {
  uint64_t bytes = 0;
  if (!std::filesystem::is_directory(path)) {
    return std::filesystem::exists(path) ? std::filesystem::file_size(path) : 0;
  }
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(path)) {
    if (entry.is_regular_file()) bytes += entry.file_size();
  }
  return bytes;
}

void BM_Export(benchmark::State& state, const ExportFormat& format) {
  char folder[] = "/tmp/tracefs-export-bench-XXXXXX";
  if (::mkdtemp(folder) == nullptr) {
    state.SkipWithError("no folder");
    return;
  }
  NullOutput out;
  uint64_t bytes = 0;
  uint64_t rounds = 0;
  for (auto _ : state) {
    ExportOptions options;
    options.path = std::string(folder) + "/" + std::to_string(rounds++);
    if (format.kind == ExportKind::kFolder) {
      std::filesystem::create_directory(options.path);
    }
    const auto exporter = format.make(out, options);
    const uint64_t records =
        ForEachRecord([&](const Record& r) { exporter->Write(r); },
                      [&] { exporter->Finish(); });
    if (records != kSampleOperations || !exporter->status().ok()) {
      state.SkipWithError("lost some");
    }
    (void)out.Flush();
    state.PauseTiming();
    bytes += BytesBelow(options.path);
    std::filesystem::remove_all(options.path);
    state.ResumeTiming();
  }
  std::filesystem::remove_all(folder);
  SetRates(state, bytes + out.bytes());
}

}  // namespace
}  // namespace tracefs::bench

int main(int argc, char** argv) {
  using namespace tracefs;  // NOLINT: a main
  for (const ExportFormat& format : ExportFormats()) {
    if (format.kind == ExportKind::kLines) continue;
    benchmark::RegisterBenchmark(
        ("BM_Export/" + std::string(format.name)).c_str(),
        [&format](benchmark::State& state) { bench::BM_Export(state, format); })
        ->Unit(benchmark::kMillisecond);
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
