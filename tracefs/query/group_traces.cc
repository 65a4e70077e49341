#include "tracefs/query/group_traces.h"

#include <vector>

namespace tracefs::query {

Status GroupTraces(reader::TraceInput* input, Grouping* grouping) {
  std::vector<bool> told(input->size());
  // A header is known when something of its trace comes.
  const auto tell = [&](size_t trace) {
    const format::TraceHeader& header =
        input->trace(trace).description().header;
    if (told[trace] || header.properties.empty()) return;
    grouping->SetTrace(trace, header.Get("host.name"));
    told[trace] = true;
  };
  if (grouping->spec().needs_records()) {
    input->ForEach([&](const format::Record& record, size_t trace) {
      tell(trace);
      if (input->asked()) {
        grouping->AddRecord(record, trace);
      } else {
        grouping->Pass(record);
      }
    });
    return {};
  }
  return input->ForEachBatch(grouping->columns(),
                             [&](const reader::Batch& batch) {
                               for (size_t i = 0; i < told.size(); ++i) {
                                 tell(i);
                               }
                               grouping->Add(batch);
                             });
}

}  // namespace tracefs::query
