// From a trace in memory to JSON Lines in memory: reading, decoding and
// formatting, as tracefs-dump does. Workload: sample_trace.h. Unit: operations
// a second on one core (items_per_second). Baseline: the same keys and values
// through nlohmann::json and its dump().
#include <benchmark/benchmark.h>

#include <nlohmann/json.hpp>

#include "bench/micro/sample_trace.h"
#include "tracefs/export/jsonl.h"
#include "tracefs/export/text.h"
#include "tracefs/format/block_decoder.h"
#include "tracefs/format/trace_merger.h"
#include "tracefs/text/flag_names.h"

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

template <typename Write>
uint64_t ForEachRecord(Write write) {
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
  return records;
}

void SetRates(benchmark::State& state, uint64_t output_bytes) {
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations()) *
                          static_cast<int64_t>(kSampleOperations));
  state.counters["bytes/line"] =
      static_cast<double>(output_bytes) /
      (static_cast<double>(state.iterations()) * kSampleOperations);
}

void BM_Export(benchmark::State& state,
               std::unique_ptr<Exporter> (*make)(OutputBuffer&,
                                                 const ExportOptions&)) {
  NullOutput out;
  for (auto _ : state) {
    const auto exporter = make(out, {});
    const uint64_t records =
        ForEachRecord([&](const Record& r) { exporter->Write(r); });
    if (records != kSampleOperations) state.SkipWithError("lost some");
    (void)out.Flush();
  }
  SetRates(state, out.bytes());
}
BENCHMARK_CAPTURE(BM_Export, jsonl, &MakeJsonlExporter)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Export, text, &MakeTextExporter)
    ->Unit(benchmark::kMillisecond);

// ordered_json, because the keys have an order; its plain object is slower.
nlohmann::ordered_json ToJson(const Record& record) {
  const Event& event = record.event;
  nlohmann::ordered_json object;
  object["ts"] = record.real_ns;
  object["op"] = OpName(event.op);
  PathBuffer buffer;
  const std::string_view path = format::PathOf(record, buffer);
  if (!path.empty()) object["path"] = path;
  if (record.HasText(Field::kComm)) object["comm"] = record.Text(Field::kComm);
  for (const FieldInfo& f : Fields()) {
    if (!IsNumeric(f.field) || !event.Has(f.field)) continue;
    const uint64_t value = event.Get(f.field);
    if (f.field == Field::kTime) continue;
    if (f.field == Field::kErrno) {
      if (value != 0) object["errno"] = ErrnoName(value);
    } else if (f.field == Field::kType) {
      object["type"] = FileTypeName(value);
    } else if (f.type == FieldType::kSigned) {
      object[std::string(f.json_key)] = static_cast<int64_t>(value);
    } else {
      object[std::string(f.json_key)] = value;
    }
  }
  object["tracer"] = record.tracer_id;
  return object;
}

void BM_BaselineNlohmann(benchmark::State& state) {
  NullOutput out;
  for (auto _ : state) {
    ForEachRecord([&](const Record& r) {
      out.Append(ToJson(r).dump());
      out.Append("\n");
    });
    (void)out.Flush();
  }
  SetRates(state, out.bytes());
}
BENCHMARK(BM_BaselineNlohmann)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace tracefs::bench
