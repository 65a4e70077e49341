#include "tracefs/tools/deps/load_graph.h"

#include <memory>
#include <utility>

#include "filters/output/chain.h"
#include "filters/output/key_ring.h"
#include "tracefs/build/record_step.h"
#include "tracefs/crypto/key_source.h"
#include "tracefs/export/escape.h"
#include "tracefs/format/byte_source.h"
#include "tracefs/format/trace_merger.h"
#include "tracefs/format/trace_reader.h"
#include "tracefs/reader/trace_files.h"

namespace tracefs {
namespace {

constexpr char kCommand[] = "tracefs-deps: ";
// The findings of a trace that are told; the rest is counted.
constexpr size_t kMaxTold = 5;

Result<std::unique_ptr<format::ByteSource>> Open(const TraceFiles& trace) {
  if (trace.paths.size() == 1) {
    return format::FdSource::Open(trace.paths[0], /*follow=*/false);
  }
  return std::unique_ptr<format::ByteSource>(
      std::make_unique<format::FileChain>(trace.paths, /*follow=*/false));
}

}  // namespace

Result<LoadedGraph> LoadGraph(const std::vector<std::string>& traces,
                              const std::vector<std::string>& keys,
                              const std::string* mount_point,
                              OutputBuffer& err) {
  const auto ring = std::make_shared<KeyRing>();
  if (Status s = AddKeyArguments(keys, "--key", ring.get()); !s.ok()) return s;
  std::vector<std::string> files;
  for (const std::string& name : traces) {
    if (Status s = AddFiles(name, &files); !s.ok()) return s;
  }
  build::GraphBuilder builder;
  build::RecordSteps steps(mount_point);
  format::TraceMerger merger;
  size_t told = 0;
  for (const TraceFiles& trace : JoinParts(files)) {
    auto source = Open(trace);
    if (!source.ok()) {
      return source.status().Prefixed(TerminalWord(trace.name));
    }
    format::TraceReaderOptions reader;
    reader.name = trace.name;
    reader.decoder = MakeDecoderFactory(ring);
    reader.process = [&](const ProcessRecord& record) { builder.Take(record); };
    reader.report =
        [&, name = TerminalWord(trace.name)](const format::Report& report) {
          if (++told > kMaxTold) return;
          err.Append(kCommand + name + ": " + report.Text() + "\n");
        };
    merger.Add(std::make_unique<format::TraceReader>(*std::move(source),
                                                     std::move(reader)));
  }
  format::Record record;
  while (merger.Next(&record) == format::ReadStep::kItem) {
    if (const build::FileStep* const step = steps.Of(record)) {
      builder.Take(*step);
    }
  }
  LoadedGraph loaded;
  for (size_t i = 0; i < merger.size(); ++i) {
    const format::TraceReader& trace = merger.reader(i);
    if (!merger.status(i).ok()) {
      return merger.status(i).Prefixed(TerminalWord(trace.context().name));
    }
    if (trace.stats().Bad()) {
      loaded.damaged = true;
      err.Append(kCommand + TerminalWord(trace.context().name) +
                 ": something is lost or damaged; answers may lack it "
                 "(tracefs-dump --stats tells more)\n");
    }
    if (loaded.mount_point.empty()) {
      loaded.mount_point =
          trace.context().description.header.Get("mount.point");
    }
  }
  if (mount_point != nullptr) loaded.mount_point = *mount_point;
  loaded.graph = builder.Finish();
  return loaded;
}

}  // namespace tracefs
