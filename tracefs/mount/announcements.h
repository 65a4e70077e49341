// What a mount tells people when it begins and when it ends.
#pragma once

#include <string>
#include <vector>

#include "tracefs/mount/options.h"
#include "tracefs/pipeline/tracer_stats.h"

namespace tracefs {

// Says on standard error what is lost for want of root, and returns it.
std::string TellWhatIsLost(const MountOptions& options);

// Warns on standard error if the working directory (`here`) is where the mount
// now is: what a shell does in its working directory does not go through a
// mount that was made over it later.
void TellWhereTheShellStands(const std::string& here,
                             const std::string& mount_point);

// The totals: one notice for each thing that went wrong and one for the rest.
// Returns what was lost.
std::string TellEnd(const char* reason, const std::vector<TracerStats>& last);

}  // namespace tracefs
