// What a rule is to a plan.
#pragma once

#include <string>

#include "anonymize/policy.h"

namespace tracefs::anonymize {

inline bool RuleNeedsKey(const Rule& rule) {
  return NeedsKey(rule.action) || rule.shift;
}

// The statement a rule comes from, for messages.
inline std::string Where(const Rule& rule) { return rule.origin + ": "; }

}  // namespace tracefs::anonymize
