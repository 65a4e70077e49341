// Unmounting that waits: `tracefs-ctl MNT unmount`, and what a helper of
// umount(8) is to call.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "tracefs/base/status.h"

namespace tracefs {

// Unmounts `mount_point` and returns when its traces are complete and its
// daemon has ended: the daemon's word on them, a line of JSON ("unmount" in
// docs/control-protocol.md). Waits for `patience` at most. `tell` gets one line
// if that takes longer than a moment. kInvalid if it is not a mount point of
// tracefs, kSystem with EBUSY if it is in use and still mounted, with ETIMEDOUT
// if it is unmounted and the wait was not long enough.
Result<std::string> UnmountAndWait(
    const std::string& mount_point, std::chrono::seconds patience,
    const std::function<void(const std::string&)>& tell);

// What UnmountAndWait returned, for people: a line for each tracer that lost
// something or could not write; empty if all went well.
Result<std::string> UnmountText(const std::string& line);

}  // namespace tracefs
