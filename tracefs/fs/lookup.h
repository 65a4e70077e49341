// What look-ups by name and by node id share.
#pragma once

#include <sys/stat.h>

#include "tracefs/fs/op_scope.h"

namespace tracefs {

// Answers a look-up with `inode`, which `st` describes and one lookup of which
// is counted.
void ReplyEntry(OpScope& op, Inode& inode, struct stat st);

// Serves the look-up if it is of "." or "..", which the kernel sends where it
// has a handle and no inode (lookup_again.cc); false if it is not.
bool LookedUpAgain(fuse_req_t req, fuse_ino_t id, const char* name);

}  // namespace tracefs
