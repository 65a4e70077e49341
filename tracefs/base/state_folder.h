// Where commands keep what outlives them and was given no other place.
#pragma once

#include <string>

#include "tracefs/base/status.h"

namespace tracefs {

// $STATE_DIRECTORY of a service (systemd.exec(5)); of root /var/lib/tracefs; of
// others $XDG_STATE_HOME/tracefs, ~/.local/state/tracefs without it. Only a
// name: nothing is made. Empty if there is no home.
std::string StateFolder();

// Makes a folder, and those above it that are missing, durably. kSystem.
Status MakeFolders(const std::string& path, unsigned mode);

// The same for a folder that is this user's alone: mode 0700, and kInvalid if
// what is there is a link, or others own it or may look into it. So it may lie
// in a folder where everybody can write.
Status MakePrivateFolder(const std::string& path);

}  // namespace tracefs
