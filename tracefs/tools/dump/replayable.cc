#include "tracefs/tools/dump/replayable.h"

#include "tracefs/replay/check.h"
#include "tracefs/tools/dump/dump.h"

namespace tracefs {
namespace {

Result<replay::Checked> Check(const DumpOptions& options) {
  replay::PlanBuilder builder({}, nullptr);
  reader::InputOptions how = InputOf(options);
  how.all_or_none = true;
  const auto input = reader::TraceInput::Open(
      how, {.state = [&](const format::StateRecord& state) {
        builder.TakeState(state);
      }});
  if (!input.ok()) return input.status();
  format::Record record;
  while ((*input)->Next(&record)) {
    if (Status s = builder.Take(record, /*selected=*/true); !s.ok()) return s;
  }
  if (Status s = builder.Finish(); !s.ok()) return s;
  if (Status s = (*input)->status(); !s.ok()) return s;
  replay::Checked checked;
  checked.Add(builder);
  for (size_t i = 0; i < (*input)->size(); ++i) {
    checked.Add((*input)->trace(i).context());
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
