// RecordFilter: an expression in the language of filters, words that only
// traces have among them, for who looks at one record after the other.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "filters/input/name_table.h"
#include "tracefs/base/status.h"
#include "tracefs/query/trace_filter.h"
#include "tracefs/reader/event_filter.h"

namespace tracefs::query {

// Used by one thread; movable.
class RecordFilter {
 public:
  // `origin` stands before the place in messages. `utc`: times without a zone
  // are UTC.
  static Result<RecordFilter> Compile(std::string_view text,
                                      std::string_view origin, bool utc);

  bool Keep(format::Record& record) const {
    return compiled_ != nullptr ? compiled_->Keep(record.event)
                                : filter_->Keep(record);
  }

 private:
  RecordFilter() = default;

  std::unique_ptr<reader::EventFilter> compiled_;
  std::unique_ptr<NameTable> names_;  // outlives filter_
  std::optional<TraceFilter> filter_;
};

}  // namespace tracefs::query
