// The files that the outputs of a config want, as the control protocol has
// them: what `check` answers, and what a client that knows them itself compares
// with the answer.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "tracefs/pipeline/wish.h"

namespace tracefs {

// "files" of docs/control-protocol.md, in the order of `wishes`.
nlohmann::ordered_json WishesJson(const std::vector<Wish>& wishes);

}  // namespace tracefs
