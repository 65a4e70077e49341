// Running in the background, with the beginning in the foreground.
#pragma once

#include <functional>

#include "tracefs/base/status.h"

namespace tracefs {

// Runs `body` in a new process of its own session. Its standard streams are the
// caller's until it calls `ready`; then they become /dev/null, and this process
// returns 0. If `body` returns without having called `ready`, this process
// returns its result. The working directory is left to `body`. To be called
// while there is one thread.
int Daemonize(
    const std::function<int(const std::function<Status()>& ready)>& body);

}  // namespace tracefs
