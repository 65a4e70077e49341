// Plans for the two directions: from what a user gave (policy, keys) and what a
// trace says of itself.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "anonymize/key_set.h"
#include "anonymize/plan.h"
#include "anonymize/policy.h"

namespace tracefs::anonymize {

// The plan that hides by `policy`. Daily keys are those of the day the trace
// began.
Result<std::unique_ptr<const Plan>> MakeHidePlan(
    const Policy& policy, const KeySet& keys,
    const format::SelfDescription& description);

// The plan that reveals these domains of a trace, or "all" that its header
// names and keys are given for. kInvalid if the trace is not anonymised, was
// anonymised otherwise, or with other keys: they are named.
Result<std::unique_ptr<const Plan>> MakeRevealPlan(
    const std::vector<std::string>& domains, const KeySet& keys,
    const format::SelfDescription& description);

// The key of one domain, for one day if it is not empty. kInvalid if there is
// no such domain or no master.
Result<DerivedKey> MakeDomainKey(const KeySet& master,
                                 const std::string& domain,
                                 const std::string& day);

// The key of the names below one directory, a path from the root of the mount,
// in traces anonymised by `policy`, whose names must be encrypted with `tree`.
Result<DerivedKey> MakeSubtreeKey(const Policy& policy, const KeySet& master,
                                  const std::string& day,
                                  std::string_view directory);

}  // namespace tracefs::anonymize
