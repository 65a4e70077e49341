// Messages that carry open files over a Unix socket.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <vector>

#include "tracefs/base/bytes.h"
#include "tracefs/base/unique_fd.h"

namespace tracefs {

// In one message: as many as the kernel takes (SCM_MAX_FD, linux/net/scm.h).
inline constexpr size_t kMaxPassedFiles = 253;

// Both like sendmsg(2) and recvmsg(2), repeated when a signal interrupts: the
// bytes sent or received, or -1 with errno.

// At most kMaxPassedFiles `files`, which stay the caller's. No SIGPIPE.
ssize_t SendWithFiles(int socket, ByteSpan bytes, std::span<const int> files,
                      int flags = 0);

// `files`: those that came with it. `cut`, if not null: whether there were more
// than fit into a message, or than this process may open.
ssize_t ReceiveWithFiles(int socket, std::span<std::byte> buffer,
                         std::vector<UniqueFd>* files, bool* cut = nullptr,
                         int flags = 0);

}  // namespace tracefs
