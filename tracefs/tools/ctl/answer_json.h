// What a mount answers, read as JSON that may be of any shape.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tracefs/base/status.h"

namespace tracefs {

inline Status NoSense() {
  return Status::Corrupt("the mount's answer makes no sense");
}

// A text member; "" if it is not there.
inline std::string TextIn(const nlohmann::ordered_json& object,
                          const char* name) {
  const auto at = object.find(name);
  return at != object.end() && at->is_string() ? at->get<std::string>() : "";
}

}  // namespace tracefs
