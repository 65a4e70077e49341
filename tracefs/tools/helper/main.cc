// mount.fuse.tracefs and umount.fuse.tracefs, one program.
#include "tracefs/command/called_as.h"
#include "tracefs/tools/helper/mains.h"

namespace {

// CMakeLists.txt makes the other name.
constexpr tracefs::CalledAs kCommands[] = {
    {"mount.fuse.tracefs", &tracefs::MountHelperMain},
    {"umount.fuse.tracefs", &tracefs::UmountHelperMain},
};

}  // namespace

int main(int argc, char** argv) {
  return tracefs::WhatWeAreCalled(kCommands, argc, argv).main(argc, argv);
}
