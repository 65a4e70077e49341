#include "tracefs/query/group_traces.h"

namespace tracefs::query {

Status GroupTraces(reader::TraceInput* input, Grouping* grouping) {
  if (grouping->spec().needs_records()) {
    input->ForEach([grouping](const format::Record& record, size_t trace) {
      grouping->AddRecord(record, trace);
    });
    return {};
  }
  return input->ForEachBatch(
      grouping->columns(), [&](const reader::Batch& batch) {
        for (size_t i = 0; i < input->size(); ++i) {
          // A header is known when a batch of its trace comes.
          const format::TraceHeader& header =
              input->trace(i).description().header;
          if (header.properties.empty()) continue;
          grouping->SetTrace(i, header.Get("host.name"), input->OriginOf(i));
        }
        grouping->Add(batch);
      });
}

}  // namespace tracefs::query
