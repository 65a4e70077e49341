// Connecting to an address, with a bound on how long it takes.
#pragma once

#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/net/address.h"

namespace tracefs {

// Resolves the name and tries each of its addresses for at most 5 s. ECANCELED
// when something happens to `cancel` meanwhile. The socket is non-blocking.
// A Unix socket must be one that only root, this user or the owner of the
// directory it lies in can have made: EACCES otherwise.
Result<UniqueFd> ConnectTo(const net::Address& address, int cancel);

}  // namespace tracefs
