// Reads traces that tests have in memory.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "tracefs/format/trace_merger.h"

namespace tracefs::test {

// Calls `use` with each operation of `trace`, which stays as long as the call,
// in their order, and says how the trace was.
inline format::ReadStats ReadRecords(
    std::string_view trace, const std::function<void(format::Record&)>& use,
    format::TraceReaderOptions options = {}) {
  if (options.name.empty()) options.name = "memory";
  format::TraceMerger merger;
  merger.Add(std::make_unique<format::TraceReader>(
      std::make_unique<format::MemorySource>(AsBytes(trace)),
      std::move(options)));
  format::Record record;
  while (merger.Next(&record) == format::ReadStep::kItem) use(record);
  return merger.reader(0).stats();
}

}  // namespace tracefs::test
