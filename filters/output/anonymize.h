// The anonymize filter: rewrites each block by a policy before it leaves the
// host (anonymize/POLICY.md). What comes out is a trace like any other, so
// readers need not know that the filter was there.
#pragma once

#include <memory>

#include "anonymize/key_set.h"
#include "anonymize/policy.h"
#include "tracefs/pipeline/stages.h"

namespace tracefs {

// kInvalid if the policy does not cover what this version writes, contradicts
// itself or needs a key that is not there.
Result<std::unique_ptr<OutputFilter>> MakeAnonymize(
    anonymize::Policy policy, anonymize::KeySet keys, size_t block_bytes,
    std::unique_ptr<OutputFilter> next);

}  // namespace tracefs
