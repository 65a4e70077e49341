// The files that the outputs of a config need, in the control protocol's form:
// the answer to `check`, and what a client that knows them itself compares with
// the answer.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "tracefs/pipeline/wish.h"

namespace tracefs {

// "files" of docs/control-protocol.md, in the order of `wishes`.
nlohmann::ordered_json WishesJson(const std::vector<Wish>& wishes);

}  // namespace tracefs
