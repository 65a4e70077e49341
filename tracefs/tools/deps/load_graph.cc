#include "tracefs/tools/deps/load_graph.h"

#include <memory>
#include <optional>
#include <utility>

#include "filters/output/key_ring.h"
#include "tracefs/build/record_step.h"
#include "tracefs/command/progress.h"
#include "tracefs/crypto/key_source.h"
#include "tracefs/reader/trace_limits.h"
#include "tracefs/reader/trace_set.h"
#include "tracefs/text/escape.h"
#include "tracefs/tools/deps/main.h"

namespace tracefs {
namespace {

// The findings of a trace that are told; the rest is counted.
constexpr size_t kMaxTold = 5;
// How many operations are read before it is looked how far it is.
constexpr uint64_t kTellAfter = 4096;

std::string NameOf(const format::TraceReader& trace) {
  return TerminalWord(trace.context().name);
}

}  // namespace

Result<LoadedGraph> LoadGraph(const std::vector<std::string>& names,
                              const std::vector<std::string>& keys,
                              const std::string* mount_point,
                              OutputBuffer& err) {
  const auto ring = std::make_shared<KeyRing>();
  if (Status s = AddKeyArguments(keys, "--key", ring.get()); !s.ok()) return s;
  build::GraphBuilder builder;
  size_t told = 0;
  const auto tell = [&](const std::string& name, const format::Report& report) {
    if (++told > kMaxTold) return;
    err.Append(kDepsSays + name + ": " + report.Text() + "\n");
  };
  const reader::TraceSet* set = nullptr;
  reader::TraceSet traces(
      {.keys = ring, .sinks = [&](size_t i) {
         return reader::TraceSinks{
             .report =
                 [&, i](const format::Report& report) {
                   tell(NameOf(set->trace(i)), report);
                 },
             .process =
                 [&](const ProcessRecord& record) { builder.Take(record); }};
       }});
  set = &traces;
  Status opened;
  traces.AddNamed(names, [&](const Status& failed) {
    if (opened.ok()) opened = failed;
  });
  if (!opened.ok()) return opened;
  build::RecordSteps steps(mount_point);
  format::Record record;
  std::optional<Progress> progress(std::in_place, names);
  for (uint64_t count = 1; traces.Next(&record) == format::ReadStep::kItem;
       ++count) {
    if (count % kTellAfter == 0 && progress->shown()) {
      uint64_t bytes = 0;
      for (size_t i = 0; i < traces.size(); ++i) {
        bytes += traces.trace(i).stats().bytes;
      }
      progress->Tell(bytes);
    }
    if (const build::FileStep* const step = steps.Of(record)) {
      builder.Take(*step);
    }
  }
  progress.reset();
  LoadedGraph loaded;
  for (size_t i = 0; i < traces.size(); ++i) {
    const format::TraceReader& trace = traces.trace(i);
    if (!traces.status(i).ok()) return traces.status(i).Prefixed(NameOf(trace));
    if (trace.stats().Bad()) {
      loaded.damaged = true;
      err.Append(kDepsSays + NameOf(trace) +
                 ": something is lost or damaged; answers may lack it "
                 "(tracefs-dump --stats tells more)\n");
    }
    if (loaded.mount_point.empty()) {
      loaded.mount_point =
          trace.context().description.header.Get("mount.point");
      loaded.source = trace.context().description.header.Get("backing.path");
    }
    for (const std::string& limit : reader::LimitsOf(trace.context())) {
      loaded.limits.push_back(NameOf(trace) + ": " + limit);
    }
  }
  if (mount_point != nullptr) loaded.mount_point = *mount_point;
  loaded.graph = builder.Finish();
  return loaded;
}

}  // namespace tracefs
