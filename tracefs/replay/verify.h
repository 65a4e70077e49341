// Verification: what an operation came to against what the trace says.
#pragma once

#include <optional>
#include <string>

#include "tracefs/replay/action.h"
#include "tracefs/replay/outcome.h"
#include "tracefs/replay/target_tree.h"

namespace tracefs::replay {

struct Verdict {
  bool matches = true;
  std::optional<Explained> explained;  // where it does not match
  std::string text;                    // what was expected, and what came
};

struct VerifyOptions {
  bool has_bytes = true;  // what is written is what was written then
  Grants grants;
};

Verdict Verify(const Action& action, const Done& done,
               const VerifyOptions& options);

// "ENOENT", or a number.
std::string ErrorName(uint32_t error);

}  // namespace tracefs::replay
