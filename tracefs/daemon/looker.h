// Looker: a process that may see what others run and where (/proc/PID/exe, cwd,
// environ), for a daemon that may not. It has CAP_SYS_PTRACE and
// CAP_DAC_READ_SEARCH, where there are any, and nothing open but /proc and a
// socket: a question of one length comes in, the number of a process and which
// of the three, and a text goes out. It ends when the socket is closed, or when
// a question has another length. The watchdog makes it when it is asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "tracefs/base/unique_fd.h"

namespace tracefs {

// Answers on `socket`, a SOCK_SEQPACKET, until it is closed, and ends the
// process.
[[noreturn]] void RunLooker(UniqueFd socket);

enum class Look : char { kExe = 'x', kCwd = 'w', kEnvironment = 'e' };
// Bytes of an answer at most; an environment is cut there.
inline constexpr size_t kMaxLook = 65536;

// Asks: the file that a process runs, where it is, or its environment; nothing
// if that cannot be known. May wait, for a process that is in the middle of
// execve(2). Threads: one at a time.
std::optional<std::string> AskLooker(int socket, uint32_t pid, Look what);

}  // namespace tracefs
