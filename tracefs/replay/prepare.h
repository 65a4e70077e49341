// The tree that existed before a trace began, rebuilt.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/replay/plan_file.h"
#include "tracefs/replay/target_tree.h"

namespace tracefs::replay {

struct Prepared {
  uint64_t entries = 0;
  uint64_t failed = 0;              // could not be made
  std::vector<std::string> errors;  // the first of them
  // Files of which the trace has a checksum (STR_REPLAY_CONTENTS): what they
  // hold, before the first operation, is not what it was.
  uint64_t checked = 0;
  uint64_t other_contents = 0;
  std::vector<std::string> others;  // the first of them
};

// Makes what `plan` says was there before, or, if not `make`, opens it.
Result<Prepared> PrepareTree(int plan, bool make, TargetTree* tree);

// Calls `use` with each entry of a plan that was there before.
Status ForEachInitial(int plan,
                      const std::function<void(const TreeEntry&)>& use);

}  // namespace tracefs::replay
