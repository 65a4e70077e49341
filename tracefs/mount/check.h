// tracefs-mount --check and --version.
#pragma once

#include <string>

#include "tracefs/base/status.h"
#include "tracefs/mount/options.h"

namespace tracefs {

// Judges a config as a mount with it would, now and by this user, but makes and
// changes nothing; prints every tracer with its compiled filter, as text or for
// Graphviz, and on standard error what it warns of. `visibility`: the mount's.
Status CheckConfig(const std::string& config_file, bool dot,
                   Visibility visibility);

// Versions of program and libfuse, optional features.
std::string VersionText();

}  // namespace tracefs
