#include "tracefs/base/version.h"

namespace tracefs {

constinit const std::string_view kVersion = TRACEFS_VERSION;

}  // namespace tracefs
