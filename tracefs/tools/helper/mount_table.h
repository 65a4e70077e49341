// What is mounted, by the kernel's table: nobody is asked who might not answer;
// and the notes of mount(8) beside it.
#pragma once

#include <optional>
#include <string>

#include "tracefs/base/status.h"

namespace tracefs {

struct MountedHere {
  std::string type;  // "fuse.tracefs"
  std::string source;
  std::string flags;    // of the mount: "rw,nosuid,relatime"
  std::string options;  // of the file system: "ro,user_id=0,…"
};

// What lies uppermost at that place, an absolute path without links.
std::optional<MountedHere> UppermostAt(const std::string& mount_point);

// The absolute path without links; the last part need not answer. Of what is
// not there the words as given.
std::string PlaceOf(const std::string& path);

// Notes in utab, as mount(8) does, that umount(8) is to call our helper for
// this mount. Nothing where the machine keeps no utab, or for others than root.
void NoteHelper(const std::string& source, const std::string& mount_point);
// Takes such notes back.
void ForgetHelper(const std::string& mount_point);

// ro, rw of the file system, whatever else is set stays. kSystem EBUSY while
// somebody writes.
Status SetReadOnly(const std::string& mount_point, bool read_only);

}  // namespace tracefs
