#include "tracefs/query/group_traces.h"

#include <string>
#include <vector>

namespace tracefs::query {
namespace {

std::vector<std::string> HostsOf(const reader::TraceInput& input) {
  std::vector<std::string> hosts;
  for (size_t i = 0; i < input.size(); ++i) {
    hosts.emplace_back(input.trace(i).description().header.Get("host.name"));
  }
  return hosts;
}

}  // namespace

Status GroupTraces(reader::TraceInput* input, Grouping* grouping) {
  if (grouping->spec().needs_records()) {
    input->ForEach([grouping](const format::Record& record, size_t trace) {
      grouping->AddRecord(record, trace);
    });
    return {};
  }
  // A header is known when a batch of its trace comes.
  const bool by_host = grouping->spec().needs_hosts();
  return input->ForEachBatch(grouping->columns(),
                             [&](const reader::Batch& batch) {
                               if (by_host) {
                                 grouping->SetHosts(HostsOf(*input));
                               }
                               grouping->Add(batch);
                             });
}

}  // namespace tracefs::query
