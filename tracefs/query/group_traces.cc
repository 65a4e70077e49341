#include "tracefs/query/group_traces.h"

#include <vector>

namespace tracefs::query {

Status GroupTraces(reader::TraceInput* input, Grouping* grouping) {
  if (grouping->spec().needs_records()) {
    input->ForEach([grouping](const format::Record& record, size_t trace) {
      grouping->AddRecord(record, trace);
    });
    return {};
  }
  std::vector<bool> told(input->size());
  return input->ForEachBatch(
      grouping->columns(), [&](const reader::Batch& batch) {
        for (size_t i = 0; i < told.size(); ++i) {
          if (told[i]) continue;
          // A header is known when a batch of its trace comes.
          const format::TraceHeader& header =
              input->trace(i).description().header;
          if (header.properties.empty()) continue;
          grouping->SetTrace(i, header.Get("host.name"), input->OriginOf(i));
          told[i] = true;
        }
        grouping->Add(batch);
      });
}

}  // namespace tracefs::query
