// RecordFilter: an expression in the language of filters, words that only
// traces have among them, for who looks at one record after the other.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "filters/input/name_table.h"
#include "tracefs/base/status.h"
#include "tracefs/reader/event_filter.h"
#include "tracefs/reader/trace_filter.h"

namespace tracefs::reader {

// Used by one thread; movable.
class RecordFilter {
 public:
  // `origin` stands before the place in messages ("--filter"). `utc`: times
  // without a zone are UTC. kInvalid with place, word and nearest known one.
  static Result<RecordFilter> Compile(std::string_view text,
                                      std::string_view origin, bool utc);

  bool Keep(format::Record& record) const {
    return compiled_ != nullptr ? compiled_->Keep(record.event)
                                : filter_->Keep(record);
  }
  // The whole of it where it has no word that only traces have; else null.
  const std::shared_ptr<const EventFilter>& compiled() const {
    return compiled_;
  }

 private:
  RecordFilter() = default;

  std::shared_ptr<const EventFilter> compiled_;
  std::unique_ptr<NameTable> names_;  // outlives filter_
  std::optional<TraceFilter> filter_;
};

}  // namespace tracefs::reader
