// tracefs-mount --check and --version.
#ifndef TRACEFS_MOUNT_CHECK_H_
#define TRACEFS_MOUNT_CHECK_H_

#include <string>

#include "tracefs/base/status.h"

namespace tracefs {

// Checks a config without opening anything it names, and prints every tracer
// with its compiled filter, as text or for Graphviz.
Status CheckConfig(const std::string& config_file, bool dot);

// Versions of program and libfuse, optional features.
std::string VersionText();

}  // namespace tracefs

#endif  // TRACEFS_MOUNT_CHECK_H_
