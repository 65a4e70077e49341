// Looker: a process that may see what others run (/proc/PID/exe), for a daemon
// that may not. It has CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH, where there are
// any, and nothing open but /proc and a socket: a number comes in, a path goes
// out. It ends when the socket is closed. The watchdog makes it when it is
// asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tracefs/base/unique_fd.h"

namespace tracefs {

// Answers on `socket`, a SOCK_SEQPACKET, until it is closed, and ends the
// process.
[[noreturn]] void RunLooker(UniqueFd socket);

// Asks: the file that a process runs, or nothing. May wait, for a process that
// is in the middle of execve(2). Threads: one at a time.
std::optional<std::string> AskLooker(int socket, uint32_t pid);

}  // namespace tracefs
