// A small file beside an export: all of it, or as it was before.
#pragma once

#include <string>
#include <string_view>

#include "tracefs/base/status.h"

namespace tracefs {

Status WriteSideFile(const std::string& path, std::string_view text);

}  // namespace tracefs
