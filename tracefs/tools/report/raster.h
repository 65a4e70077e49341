// A picture as a PNG, drawn by the distribution's rsvg-convert.
#pragma once

#include <string>
#include <string_view>

#include "tracefs/base/status.h"

namespace tracefs {

// The bytes of the PNG. kSystem, with the package to install, where there is no
// rsvg-convert.
Result<std::string> RasterOf(std::string_view svg);

}  // namespace tracefs
