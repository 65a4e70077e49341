#include "tracefs/tools/dump/replayable.h"

#include <memory>
#include <utility>

#include "filters/output/key_ring.h"
#include "tracefs/crypto/key_source.h"
#include "tracefs/reader/trace_set.h"
#include "tracefs/replay/check.h"
#include "tracefs/text/escape.h"

namespace tracefs {
namespace {

Result<replay::Checked> Check(const DumpOptions& options) {
  const auto keys = std::make_shared<KeyRing>();
  if (Status s = AddKeyArguments(options.keys, "--key", keys.get()); !s.ok()) {
    return s;
  }
  replay::PlanBuilder builder({}, nullptr);
  Status failed;
  reader::TraceSet::Options how;
  how.keys = keys;
  how.sinks = [&](size_t) {
    reader::TraceSinks sinks;
    sinks.state = [&](const format::StateRecord& s) { builder.TakeState(s); };
    return sinks;
  };
  reader::TraceSet traces(std::move(how));
  traces.AddNamed(options.traces, [&](const Status& s) { failed = s; });
  if (!failed.ok()) return failed;
  format::Record record;
  while (traces.Next(&record) == format::ReadStep::kItem) {
    if (Status s = builder.Take(record, /*selected=*/true); !s.ok()) return s;
  }
  if (Status s = builder.Finish(); !s.ok()) return s;
  replay::Checked checked;
  checked.Add(builder);
  for (size_t i = 0; i < traces.size(); ++i) {
    const format::TraceReader& trace = traces.trace(i);
    if (!traces.status(i).ok()) {
      return traces.status(i).Prefixed(TerminalWord(trace.context().name));
    }
    if (i == 0) {
      checked.visibility = trace.context().description.header.Get("visibility");
    }
    checked.Add(trace.stats());
  }
  return checked;
}

}  // namespace

int CheckReplayable(const DumpOptions& options, OutputBuffer& out,
                    OutputBuffer& err) {
  const auto checked = Check(options);
  Status status = checked.status();
  int exit_status = 0;
  if (checked.ok()) {
    const auto findings = replay::FindLacks(*checked);
    out.Append(
        replay::LacksText(*checked, findings, options.format == "jsonl"));
    exit_status = replay::IsReplayable(*checked, findings) ? 0 : 1;
    status = out.Flush();
  }
  if (status.ok() || status.error() == EPIPE) return exit_status;
  err.Append("tracefs-dump: " + status.message() + "\n");
  (void)err.Flush();  // nobody to tell
  return ExitStatus(status);
}

}  // namespace tracefs
