// Who owns the file that a name led to?
//
// In a directory where others can write, any name may have been taken first: by
// a FIFO that they read, a link to a file of ours, a socket that they listen
// at. The name says nothing, so a file that may have existed before is checked
// after opening, through the descriptor, where it can no longer be exchanged;
// and it is opened without following a link (O_NOFOLLOW). Newly made files
// (O_EXCL) need no check.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <optional>
#include <string>

#include "tracefs/base/status.h"

namespace tracefs {

struct Ownership {
  mode_t type = S_IFREG;
  // The owner allowed besides root; by default this process's user.
  std::optional<uid_t> owner = {};
  // Bits that its mode must not have: 022 if others must not write, 077 if they
  // must not read either. An ACL that allows it shows in the group bits.
  mode_t forbidden = 022;
  // No second name: others can link a file of ours to a name of their choice.
  bool one_name = false;
};

// kInvalid, with what to do, unless the file behind `fd` (O_PATH is enough) is
// like that. `what` names it: "FIFO '/run/t'".
Status CheckOwnership(int fd, const Ownership& wanted, const std::string& what);

}  // namespace tracefs
