#include "tracefs/tools/deps/load_graph.h"

#include <utility>

#include "tracefs/build/record_step.h"
#include "tracefs/command/progress.h"
#include "tracefs/reader/trace_input.h"
#include "tracefs/reader/trace_limits.h"
#include "tracefs/text/escape.h"
#include "tracefs/tools/deps/main.h"

namespace tracefs {
namespace {

// Files of two machines may have one path, and pipes one number.
Status OneMachine(reader::TraceInput* input) {
  for (size_t i = 1; i < input->size(); ++i) {
    const auto host = [input](size_t trace) {
      return input->trace(trace).context().description.header.Get("host.name");
    };
    if (host(0).empty() || host(i).empty() || host(0) == host(i)) continue;
    return Status::Invalid(
        input->NameOf(0) + " and " + input->NameOf(i) + " are of two hosts, " +
        TerminalWord(host(0)) + " and " + TerminalWord(host(i)) +
        "; a build is one machine's: give the traces of one");
  }
  return {};
}

}  // namespace

Result<LoadedGraph> LoadGraph(const std::vector<std::string>& names,
                              const std::vector<std::string>& keys,
                              const std::string* mount_point, IndexWish index,
                              OutputBuffer& err) {
  // Paths are where the mount was.
  if (index != IndexWish::kNone && names.size() == 1 &&
      mount_point == nullptr) {
    Result<TraceIndex> found = FindIndex(names[0], keys);
    if (found.ok()) {
      const bool all = index == IndexWish::kAll;
      if (Result<LoadedGraph> loaded = GraphOf(*found, all); loaded.ok()) {
        if (found->input->unproven()) {
          err.Append(std::string(kDepsSays) + reader::kNotAllProven + "\n");
        }
        return loaded;
      } else {
        err.Append(kDepsSays + names[0] + ": " + loaded.status().message() +
                   "; the trace is read instead\n");
      }
    } else if (found.status().code() == StatusCode::kCorrupt) {
      err.Append(kDepsSays + TerminalText(names[0]) + ": " +
                 found.status().message() + "; the trace is read instead\n");
    }
  }
  build::GraphBuilder builder;
  Progress progress(names);
  reader::InputSinks sinks;
  sinks.process = [&](const ProcessRecord& record) { builder.Take(record); };
  sinks.progress = [&](uint64_t bytes) { progress.Tell(bytes); };
  const auto opened = reader::TraceInput::Open(
      {.traces = names, .keys = keys, .all_or_none = true}, std::move(sinks));
  if (!opened.ok()) return opened.status();
  reader::TraceInput& input = **opened;
  build::RecordSteps steps(mount_point);
  format::Record record;
  while (input.Next(&record)) {
    if (const build::FileStep* const step = steps.Of(record)) {
      builder.Take(*step);
    }
  }
  progress.Hide();
  if (Status s = input.status(); !s.ok()) return s;
  if (Status s = OneMachine(&input); !s.ok()) return s;
  err.Append(input.Problems(kDepsSays));
  LoadedGraph loaded;
  for (size_t i = 0; i < input.size(); ++i) {
    const format::TraceReader& trace = input.trace(i);
    if (trace.stats().Bad()) {
      loaded.damaged = true;
      err.Append(kDepsSays + input.NameOf(i) +
                 ": something is lost or damaged; answers may lack it "
                 "(tracefs-dump --stats tells more)\n");
    }
    if (loaded.mount_point.empty()) {
      loaded.mount_point =
          trace.context().description.header.Get("mount.point");
      loaded.source = trace.context().description.header.Get("backing.path");
    }
    for (const std::string& limit : reader::LimitsOf(trace.context())) {
      loaded.limits.push_back(input.NameOf(i) + ": " + limit);
    }
  }
  if (input.size() == 1) {
    const format::ReadStats& stats = input.trace(0).stats();
    loaded.may_index = build::MayIndex(stats) && mount_point == nullptr;
    loaded.events = stats.events;
    loaded.blocks = stats.blocks;
  }
  if (mount_point != nullptr) loaded.mount_point = *mount_point;
  loaded.graph = builder.Finish();
  return loaded;
}

}  // namespace tracefs
