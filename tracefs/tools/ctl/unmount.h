// Unmounting that waits: `tracefs-ctl MNT unmount`, and what a helper of
// umount(8) is to call.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>

#include "tracefs/base/status.h"

namespace tracefs {

// Unmounts `mount_point` and returns when its traces are complete and its
// daemon has ended: the daemon's word on them, a line of JSON ("unmount" in
// docs/control-protocol.md), printable as it is. Where the daemon cannot
// unmount, or is dead, this process does, if it is its own user's mount. Waits
// for `patience` at most, and no longer once `stop` is set. If that takes
// longer than a moment, `tell` gets a line that says what is waited for, and
// another one when that changes. kInvalid if it is not a mount point of
// tracefs, kSystem with EBUSY if it is in use and still mounted, with
// ETIMEDOUT, or EINTR after `stop`, if it is unmounted and the wait was not
// long enough.
Result<std::string> UnmountAndWait(
    const std::string& mount_point, std::chrono::seconds patience,
    const std::function<void(const std::string&)>& tell,
    const std::atomic<bool>& stop);

// What UnmountAndWait returned, for people: a line for each tracer that lost
// something or could not write; empty if all went well.
Result<std::string> UnmountText(const std::string& line);

}  // namespace tracefs
