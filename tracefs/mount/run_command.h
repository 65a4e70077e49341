// tracefs-run: a command in a private mount of its directory, from beginning to
// end.
//
//   tracefs-run ──fork──► mount (Run, in its sandbox, in a session of its own)
//        │ ptrace, waits           ▲ process records (ProcessFeed)
//        └──fork──► command        │ operations
//                        └── FUSE ─┘
//
// The mount is made in a namespace that ends with its last process; the mount's
// process ends when the last user of the mount is gone.
#pragma once

#include "tracefs/mount/run_options.h"

namespace tracefs {

// Returns the exit status of tracefs-run. While there is only one thread.
int RunCommandTraced(const RunOptions& options);

}  // namespace tracefs
