// --audit: examines an anonymised trace like an attacker who wants to undo it.
#pragma once

#include <string>
#include <vector>

#include "anonymize/policy.h"
#include "tracefs/base/status.h"
#include "tracefs/reader/trace_set.h"

namespace tracefs::anonymize {

struct AuditOptions {
  std::string trace;
  std::string original;  // "" = only what the trace itself shows
  // The policy as it was given, if it is at hand: words it lists are not leaks.
  const Policy* policy = nullptr;
  std::vector<std::string> quasi;  // classes, or fields by their names
  std::vector<std::string> ok_words;
  reader::TraceSet::Options how;  // traces are opened
};

// Appends what it found, for people. kCorrupt if there is a leak: a protected
// value of the original in the trace, in any form that is looked for; or bytes
// in the trace that no reader would show. Memory is bounded: beyond a few
// million values the report says what was not looked at.
Status Audit(const AuditOptions& options, std::string* report);

}  // namespace tracefs::anonymize
