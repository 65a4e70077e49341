// `tracefs-ctl MNT reload`: reads the config again, without unmounting.
#pragma once

#include <functional>
#include <string>

#include "tracefs/base/status.h"
#include "tracefs/control/client.h"

namespace tracefs {

// Makes the mount trace as the config in `file` says; empty: the one it was
// mounted with, or the newest one for this host in its --config-dir, as its
// note has it (mount_note.h). The mount says which tracers of the config are
// new; what is opened for them follows from the config alone. Tracers that are
// the same go on, those of which only the filter is another get that one, new
// ones come before old ones go. What cannot be done is an error before anything
// is changed, but for tracers that come or go meanwhile. `tell` gets a line
// that says what was done.
Status Reload(ControlClient& client, const std::string& file,
              const std::function<Status(const std::string&)>& tell);

}  // namespace tracefs
