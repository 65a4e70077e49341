// The helpers of mount(8) and umount(8), as their program calls them.
#pragma once

namespace tracefs {

// Return the exit status, as of mount(8).
int MountHelperMain(int argc, char** argv);
int UmountHelperMain(int argc, char** argv);

}  // namespace tracefs
