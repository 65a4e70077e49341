// The notes of mount(8) beside the kernel's table of mounts, and what can be
// changed of a mount.
#pragma once

#include <string>

#include "tracefs/base/status.h"

namespace tracefs {

// Notes in utab, as mount(8) does, that umount(8) is to call our helper for
// this mount. Nothing where the machine keeps no utab, or for others than root.
void NoteHelper(const std::string& source, const std::string& mount_point);
// Takes such notes back.
void ForgetHelper(const std::string& mount_point);

// ro, rw of the file system, whatever else is set stays. kSystem EBUSY while
// files are open for writing.
Status SetReadOnly(const std::string& mount_point, bool read_only);

}  // namespace tracefs
