// Looker: a process that may see what others run and where (/proc/PID/exe, cwd,
// environ), for a daemon that may not. It has CAP_SYS_PTRACE and
// CAP_DAC_READ_SEARCH, where there are any, and nothing open but /proc and a
// socket: a question of one length comes in, the number of a process and which
// of the three, and a text goes out. It ends when the socket is closed, or when
// a question has another length. The watchdog makes it when it is asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "tracefs/base/helper_link.h"
#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"

namespace tracefs {

// Answers on `socket`, a SOCK_SEQPACKET, until it is closed, and ends the
// process.
[[noreturn]] void RunLooker(UniqueFd socket);

enum class Look : char { kExe = 'x', kCwd = 'w', kEnvironment = 'e' };
// Bytes of an answer at most; an environment is cut there.
inline constexpr size_t kMaxLook = 65536;

// The daemon's side: asks a looker, and starts another in the place of one that
// has died, at most one a second. Threads: one at a time.
class LookerLink {
 public:
  using Start = std::function<Result<UniqueFd>()>;
  // Starts the first one.
  explicit LookerLink(Start start);
  // False: none could be had.
  bool there() { return link_.Now() != nullptr; }

  // The file that a process runs, where it is, or its environment; nothing if
  // that cannot be known. May wait, for a process that is in the middle of
  // execve(2).
  std::optional<std::string> Ask(uint32_t pid, Look what);

 private:
  // Nothing, and the looker is dropped, where it has no answer.
  std::optional<std::string> AskOnce(const HelperLink::Socket& socket,
                                     uint32_t pid, Look what);
  bool StartAnother();

  Start start_;
  HelperLink link_{HelperKind::kLook, "looks what others run"};
  uint64_t started_ns_ = 0;
};

}  // namespace tracefs
