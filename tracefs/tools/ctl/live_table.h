// The table of `tracefs-ctl MNT top --by`: operations of a running mount,
// grouped by the same words as those of a trace, again and again.
#pragma once

#include <atomic>
#include <optional>
#include <string>

#include "tracefs/base/status.h"
#include "tracefs/query/grouping.h"
#include "tracefs/text/output_buffer.h"

namespace tracefs {

struct CtlOptions;

struct LiveTableOptions {
  std::string by;  // as it was given, for the mount
  query::GroupSpec group;
  std::string sort;           // "": the first value
  std::optional<size_t> top;  // 0: all
  bool json = false;
};

// What is asked for; nothing without --by. kInvalid with the next step, also
// for values that only a trace has.
Result<std::optional<LiveTableOptions>> ReadLiveTable(const std::string& by,
                                                      const std::string& values,
                                                      const std::string& sort,
                                                      const std::string& top);

// What the mount is asked to count: clauses as of `aggregate = { … }`.
std::string CountedClauses(const LiveTableOptions& table);

// Prints one table an interval, until `stop` or options.rounds of them.
Status LiveTable(const CtlOptions& options, OutputBuffer& out,
                 const std::atomic<bool>& stop);

}  // namespace tracefs
