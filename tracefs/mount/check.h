// tracefs-mount --check and --version.
#pragma once

#include <string>

#include "tracefs/base/status.h"
#include "tracefs/mount/options.h"

namespace tracefs {

// Checks a config as a mount by this user would now, but makes and changes
// nothing; prints every tracer with its compiled filter, as text or for
// Graphviz, and warnings on standard error. `visibility`: the mount's.
Status CheckConfig(const std::string& config_file, bool dot,
                   Visibility visibility);

// Versions of program and libfuse, optional features.
std::string VersionText();

}  // namespace tracefs
