// TraceFilter: a filter of what a trace tells. The language is that of capture
// filters, with the words of filters/input/trace_words.h. What has none of them
// is compiled as ever; the rest is evaluated as a tree around it.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "filters/input/name_service.h"
#include "filters/input/name_table.h"
#include "tracefs/base/status.h"
#include "tracefs/format/record.h"

namespace tracefs {

// Used by one thread; movable.
class TraceFilter {
 public:
  // Whether the text has one of those words; false if it is no filter.
  static bool IsNeeded(std::string_view text);
  // As Filter::Compile; `origin` stands before the place in messages. `utc`:
  // times without a zone are UTC.
  static Result<TraceFilter> Compile(std::string_view text,
                                     std::string_view origin,
                                     const NameService& users, NameTable& names,
                                     bool utc);
  TraceFilter(TraceFilter&&) noexcept;
  TraceFilter& operator=(TraceFilter&&) noexcept;
  ~TraceFilter();

  bool Keep(format::Record& record) const;

  class Node;

 private:
  explicit TraceFilter(std::unique_ptr<const Node> root);

  std::unique_ptr<const Node> root_;
};

}  // namespace tracefs
