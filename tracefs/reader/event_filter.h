// EventFilter: an expression in the language of capture filters, for readers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "filters/input/filter.h"
#include "filters/input/name_table.h"
#include "tracefs/base/status.h"

namespace tracefs::reader {

// Immutable once made; threads: any.
class EventFilter {
 public:
  // `origin` stands before the place in messages ("--filter"). kInvalid with
  // place, word and nearest known one.
  static Result<std::unique_ptr<EventFilter>> Compile(std::string_view text,
                                                      std::string_view origin);
  EventFilter(const EventFilter&) = delete;
  EventFilter& operator=(const EventFilter&) = delete;

  bool Keep(Event& event) const { return filter_->Keep(event); }
  // The operations of which it may keep any, a bit each: the others need not
  // be decoded.
  uint64_t wanted_ops() const { return wanted_ops_; }
  // Those of which it keeps all, likewise.
  uint64_t whole_ops() const { return whole_ops_; }
  // Whether `descendant of` is in it, for which blocks have to be read in
  // order.
  bool asks_for_ancestors() const { return asks_for_ancestors_; }
  const std::vector<std::string>& warnings() const {
    return filter_->warnings();
  }

 private:
  EventFilter() = default;

  NameTable names_;  // outlives filter_
  std::optional<Filter> filter_;
  uint64_t wanted_ops_ = 0;
  uint64_t whole_ops_ = 0;
  bool asks_for_ancestors_ = false;
};

}  // namespace tracefs::reader
