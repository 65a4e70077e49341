// Rewriting a trace in memory: the six configurations of the FAST 2004 paper
// (section 4.8), with the actions of the profile `research`, with and without
// the memo cache, on one and two threads; the paper's own scheme beside them.
//
// Workload: the trace in $TRACEFS_BENCH_TRACE (bench/README.md: one run of
// Postmark under FULL tracing), else sample_trace.h. Units: messages a second
// (items_per_second; threads together), growth = bytes written / bytes read
// - 1. Baseline: null, which parses and rewrites.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <fstream>

#include "anonymize/fields.h"
#include "anonymize/session.h"
#include "bench/micro/sample_trace.h"
#include "tracefs/tools/anon/trace_rewriter.h"

namespace tracefs::bench {
namespace {

using namespace tracefs::anonymize;  // NOLINT: a benchmark

// The bytes of the output are counted and forgotten.
class CountingSink final : public TraceSink {
 public:
  Status Write(ByteSpan bytes) override {
    bytes_ += bytes.size();
    return Status::Ok();
  }
  uint64_t bytes() const { return bytes_; }

 private:
  uint64_t bytes_ = 0;
};

const std::string& Trace() {
  static const std::string* const kTrace = [] {
    const char* path = std::getenv("TRACEFS_BENCH_TRACE");
    if (path == nullptr) return &SampleTrace();
    std::ifstream in(path, std::ios::binary);
    return static_cast<const std::string*>(new std::string(
        std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()));
  }();
  return *kTrace;
}

constexpr char kNames[] = "name = encrypt ext { c cc h o };\ncomm = encrypt;\n";
constexpr char kPaperNames[] = "name = paper;\ncomm = paper;\n";

// The paper's rows, each with more than the one before.
std::string RowPolicy(int row, bool paper) {
  const std::string ids =
      paper ? "uid = paper;\ngid = paper;\n" : "uid = fpe;\ngid = fpe;\n";
  std::string policy;
  if (row == 1 || row >= 3) policy += paper ? kPaperNames : kNames;
  if (row >= 2) policy += ids;
  if (row >= 4) policy += paper ? "pid = paper;\n" : "pid = fpe;\n";
  if (row >= 5) {
    policy += paper ? "time = paper;\nclock = paper;\n"
                    : "time = shift;\nclock = shift;\n";
  }
  std::string all = policy;
  for (const ClassInfo& c : Classes()) {
    const std::string name(c.name);
    if (("\n" + policy).find("\n" + name + " =") == std::string::npos) {
      all += name + " = keep;\n";
    }
  }
  return all + "property * = drop;\n";
}

constexpr const char* kRows[] = {"null",
                                 "names",
                                 "uid,gid",
                                 "names,uid,gid",
                                 "names,uid,gid,pid",
                                 "names,uid,gid,pid,time"};

void Run(benchmark::State& state, const std::string& policy_text,
         unsigned threads, size_t cache) {
  const Result<Policy> policy = ParsePolicy(policy_text, "bench");
  if (!policy.ok()) {
    state.SkipWithError(policy.status().message().c_str());
    return;
  }
  KeySet keys;
  keys.SetMaster(SecretKey());
  RewriteOptions options;
  options.name = "bench";
  options.threads = threads;
  options.cache_entries = cache;
  uint64_t messages = 0;
  uint64_t written = 0;
  for (auto _ : state) {
    MapTables maps;
    CountingSink sink;
    RewriteCounts counts;
    format::TraceReader reader(
        std::make_unique<format::MemorySource>(AsBytes(Trace())), {});
    const Status status = RewriteTrace(
        &reader, options,
        [&](const format::SelfDescription& description) {
          return MakeHidePlan(*policy, keys, description);
        },
        &maps, sink, &counts);
    if (!status.ok()) {
      state.SkipWithError(status.message().c_str());
      return;
    }
    messages += counts.messages;
    written = sink.bytes();
  }
  state.SetItemsProcessed(static_cast<int64_t>(messages));
  state.counters["growth_percent"] =
      100.0 *
      (static_cast<double>(written) / static_cast<double>(Trace().size()) -
       1.0);
}

void RegisterAll() {
  constexpr size_t kCache = BlockRewriter::kDefaultCache;
  const auto add = [](const std::string& name, const std::string& policy,
                      unsigned threads, size_t cache) {
    benchmark::RegisterBenchmark(
        name.c_str(),
        [=](benchmark::State& state) { Run(state, policy, threads, cache); })
        ->Unit(benchmark::kMillisecond)
        ->UseRealTime();
  };
  for (int row = 0; row < 6; ++row) {
    const std::string name = kRows[row];
    const std::string policy = RowPolicy(row, false);
    add(name, policy, 1, kCache);
    if (row != 0) add(name + "/no_cache", policy, 1, 0);
    if (row != 0) add(name + "/paper", RowPolicy(row, true), 1, kCache);
  }
  add("null/2_threads", RowPolicy(0, false), 2, kCache);
  add("names,uid,gid,pid,time/2_threads", RowPolicy(5, false), 2, kCache);
  for (const Profile& profile : Profiles()) {
    add("profile " + std::string(profile.name), std::string(profile.text), 1,
        kCache);
  }
}

}  // namespace
}  // namespace tracefs::bench

int main(int argc, char** argv) {
  tracefs::bench::RegisterAll();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
