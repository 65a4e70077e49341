#include "tracefs/daemon/looker.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <span>
#include <utility>
#include <vector>

#include "tracefs/base/clock.h"
#include "tracefs/base/file_io.h"
#include "tracefs/daemon/capabilities.h"

namespace tracefs {
namespace {

// A datagram of nothing means the end.
constexpr char kFound = '+';
constexpr char kNotFound = '-';

// The length of the datagram, also where it is longer than `size`.
ssize_t Receive(int socket, void* bytes, size_t size) {
  ssize_t n;
  do {
    n = ::recv(socket, bytes, size, MSG_TRUNC);
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

struct Question {
  uint32_t pid;
  uint32_t what;
};

// Bytes of the answer, or -1.
ssize_t Answer(int proc, const Question& question, std::span<char> room) {
  const std::string base = std::to_string(question.pid);
  if (question.what > 0x7f) return -1;  // else cut to a char that is one
  switch (static_cast<Look>(question.what)) {
    case Look::kExe:
      return ::readlinkat(proc, (base + "/exe").c_str(), room.data(),
                          room.size());
    case Look::kCwd:
      return ::readlinkat(proc, (base + "/cwd").c_str(), room.data(),
                          room.size());
    case Look::kEnvironment: {
      const UniqueFd file(
          ::openat(proc, (base + "/environ").c_str(), O_RDONLY | O_CLOEXEC));
      if (!file) return -1;
      return ReadAt(file.get(), std::as_writable_bytes(room), 0);
    }
  }
  return -1;
}

}  // namespace

void RunLooker(UniqueFd socket) {
  ::prctl(PR_SET_NAME, "tracefs-look", 0, 0, 0);
  if (HasCapability(CAP_SYS_PTRACE)) {
    (void)LimitCapabilities(CapabilityBit(CAP_SYS_PTRACE) |
                            CapabilityBit(CAP_DAC_READ_SEARCH));
  }
  const UniqueFd proc(::open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC));
  Question question{};
  std::vector<char> answer(1 + kMaxLook);
  while (Receive(socket.get(), &question, sizeof question) == sizeof question) {
    const ssize_t n =
        Answer(proc.get(), question, std::span(answer).subspan(1));
    answer[0] = n >= 0 ? kFound : kNotFound;
    if (!Send(socket.get(), answer.data(),
              1 + static_cast<size_t>(n > 0 ? n : 0))) {
      break;
    }
  }
  ::_exit(0);
}

LookerLink::LookerLink(Start start) : start_(std::move(start)) {
  static_cast<void>(StartAnother());
}

bool LookerLink::StartAnother() {
  const uint64_t now = MonotonicNs();
  if (started_ns_ != 0 && now - started_ns_ < kNsPerSecond) return false;
  started_ns_ = now;
  Result<UniqueFd> socket = start_();
  if (!socket.ok()) return false;
  link_.Put(*std::move(socket));
  return true;
}

std::optional<std::string> LookerLink::Ask(uint32_t pid, Look what) {
  if (const HelperLink::Socket socket = link_.Now(); socket != nullptr) {
    std::optional<std::string> found = AskOnce(socket, pid, what);
    if (link_.Now() != nullptr) return found;
  }
  if (!StartAnother()) return std::nullopt;
  const HelperLink::Socket socket = link_.Now();
  return socket != nullptr ? AskOnce(socket, pid, what) : std::nullopt;
}

std::optional<std::string> LookerLink::AskOnce(const HelperLink::Socket& socket,
                                               uint32_t pid, Look what) {
  const Question question{pid, static_cast<uint32_t>(what)};
  std::vector<char> answer(1 + kMaxLook);
  ssize_t n = -1;
  if (Send(socket->get(), &question, sizeof question)) {
    n = Receive(socket->get(), answer.data(), answer.size());
  }
  if (n < 1 || n > static_cast<ssize_t>(answer.size())) {
    link_.Drop();
    return std::nullopt;
  }
  if (answer[0] != kFound) return std::nullopt;
  return std::string(answer.data() + 1, static_cast<size_t>(n) - 1);
}

}  // namespace tracefs
