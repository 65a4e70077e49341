#include "tracefs/daemon/looker.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>

#include "tracefs/daemon/capabilities.h"

namespace tracefs {
namespace {

// A datagram of nothing means the end.
constexpr char kFound = '+';
constexpr char kNotFound = '-';

ssize_t Receive(int socket, void* bytes, size_t size) {
  ssize_t n;
  do {
    n = ::recv(socket, bytes, size, 0);
  } while (n < 0 && errno == EINTR);
  return n;
}

bool Send(int socket, const void* bytes, size_t size) {
  ssize_t n;
  do {
    n = ::send(socket, bytes, size, MSG_NOSIGNAL);
  } while (n < 0 && errno == EINTR);
  return n == static_cast<ssize_t>(size);
}

}  // namespace

void RunLooker(UniqueFd socket) {
  ::prctl(PR_SET_NAME, "tracefs-look", 0, 0, 0);
  if (HasCapability(CAP_SYS_PTRACE)) {
    (void)LimitCapabilities(CapabilityBit(CAP_SYS_PTRACE) |
                            CapabilityBit(CAP_DAC_READ_SEARCH));
  }
  const UniqueFd proc(::open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC));
  uint32_t pid = 0;
  while (Receive(socket.get(), &pid, sizeof pid) == sizeof pid) {
    std::array<char, 1 + PATH_MAX> answer;
    const std::string link = std::to_string(pid) + "/exe";
    const ssize_t n =
        ::readlinkat(proc.get(), link.c_str(), answer.data() + 1, PATH_MAX);
    answer[0] = n > 0 ? kFound : kNotFound;
    if (!Send(socket.get(), answer.data(),
              1 + static_cast<size_t>(n > 0 ? n : 0))) {
      break;
    }
  }
  ::_exit(0);
}

std::optional<std::string> AskLooker(int socket, uint32_t pid) {
  if (!Send(socket, &pid, sizeof pid)) return std::nullopt;
  std::array<char, 1 + PATH_MAX> answer;
  const ssize_t n = Receive(socket, answer.data(), answer.size());
  if (n < 2 || answer[0] != kFound) return std::nullopt;
  return std::string(answer.data() + 1, static_cast<size_t>(n) - 1);
}

}  // namespace tracefs
