// Whose file is it that a name led to?
//
// In a directory where others can write, any name may have been taken first: by
// a FIFO that they read, a link to a file of ours, a socket that they listen
// at. The name says nothing, so what may have been there before is looked at
// after it was opened, in the descriptor, where nobody can exchange it any
// more; and it is opened without following a link (O_NOFOLLOW). Files that are
// made anew (O_EXCL) need not be looked at.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <optional>
#include <string>

#include "tracefs/base/status.h"

namespace tracefs {

struct Ownership {
  mode_t type = S_IFREG;
  // Whom it may belong to besides root; by default who runs this process.
  std::optional<uid_t> owner = {};
  // Bits that its mode must not have: 022 where others must not write, 077
  // where they must not read either. An ACL that lets them shows in the bits of
  // the group.
  mode_t forbidden = 022;
  // No second name: others can link a file of ours to a name of their choice.
  bool one_name = false;
};

// kInvalid, with what to do, unless the file behind `fd` (O_PATH will do) is
// like that. `what` names it: "FIFO '/run/t'".
Status CheckOwnership(int fd, const Ownership& wanted, const std::string& what);

}  // namespace tracefs
