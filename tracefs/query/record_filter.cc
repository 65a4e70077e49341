#include "tracefs/query/record_filter.h"

#include <string>
#include <utility>

#include "filters/input/name_service.h"

namespace tracefs::query {

Result<RecordFilter> RecordFilter::Compile(std::string_view text,
                                           std::string_view origin, bool utc) {
  RecordFilter made;
  if (!TraceFilter::IsNeeded(text)) {
    auto compiled = reader::EventFilter::Compile(text, origin);
    if (!compiled.ok()) return compiled.status();
    made.compiled_ = *std::move(compiled);
    return made;
  }
  made.names_ = std::make_unique<NameTable>();
  auto filter =
      TraceFilter::Compile(text, SystemNameService(), *made.names_, utc);
  if (!filter.ok()) return filter.status().Prefixed(origin);
  made.filter_.emplace(*std::move(filter));
  return made;
}

}  // namespace tracefs::query
