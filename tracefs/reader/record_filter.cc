#include "tracefs/reader/record_filter.h"

#include <string>
#include <utility>

#include "filters/input/name_service.h"

namespace tracefs::reader {

Result<RecordFilter> RecordFilter::Compile(std::string_view text,
                                           std::string_view origin, bool utc) {
  RecordFilter made;
  if (!TraceFilter::IsNeeded(text)) {
    auto compiled = EventFilter::Compile(text, origin);
    if (!compiled.ok()) return compiled.status();
    made.compiled_ = *std::move(compiled);
    return made;
  }
  made.names_ = std::make_unique<NameTable>();
  auto filter = TraceFilter::Compile(text, origin, SystemNameService(),
                                     *made.names_, utc);
  if (!filter.ok()) return filter.status();
  made.filter_.emplace(*std::move(filter));
  return made;
}

}  // namespace tracefs::reader
