#include "drivers/output/remote/connect.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>

#include "tracefs/base/ownership.h"
#include "tracefs/net/stream.h"

namespace tracefs {
namespace {

constexpr int kConnectMs = 5000;
constexpr int kMaxAddresses = 8;

// An errno value.
int ConnectOne(int fd, const sockaddr* to, socklen_t length, int cancel) {
  if (::connect(fd, to, length) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  std::array<pollfd, 2> ready = {pollfd{fd, POLLOUT, 0},
                                 pollfd{cancel, POLLIN, 0}};
  int n;
  do {
    n = ::poll(ready.data(), ready.size(), kConnectMs);
  } while (n < 0 && errno == EINTR);
  if (n < 0) return errno;
  if (n == 0) return ETIMEDOUT;
  if (ready[1].revents != 0) return ECANCELED;
  int error = 0;
  socklen_t size = sizeof error;
  ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
  return error;
}

// The socket at `path`, O_PATH, if its listener can be trusted with a
// trace: root or ourselves made it, or somebody whose own directory it is, so
// that nobody but its owner can have made it.
Result<UniqueFd> FindSocket(const std::string& path) {
  const std::string what = "socket '" + path + "'";
  UniqueFd there(::open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!there) return Status::System(errno, "connecting");
  const Ownership wanted = {.type = S_IFSOCK, .forbidden = 0};
  const Status ours = CheckOwnership(there.get(), wanted, what);
  if (ours.ok()) return there;
  const size_t slash = path.rfind('/');
  const std::string folder =
      slash == path.npos ? "." : path.substr(0, std::max<size_t>(slash, 1));
  const UniqueFd around(
      ::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  UniqueFd found(::openat(around.get(), path.c_str() + (slash + 1),
                          O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat st;
  if (!found || ::fstat(found.get(), &st) != 0 ||
      !CheckOwnership(around.get(), {.type = S_IFDIR, .owner = st.st_uid}, what)
           .ok() ||
      !CheckOwnership(found.get(),
                      {.type = S_IFSOCK, .owner = st.st_uid, .forbidden = 0},
                      what)
           .ok()) {
    // Not kInvalid: it may be another one at the next attempt.
    return Status::SystemSaid(EACCES, ours.message());
  }
  return found;
}

Result<UniqueFd> ConnectUnix(const net::Address& address, int cancel) {
  int type = SOCK_STREAM;
  if (address.transport == net::Transport::kSeqpacket) type = SOCK_SEQPACKET;
  if (address.transport == net::Transport::kDatagram) type = SOCK_DGRAM;
  UniqueFd fd(::socket(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return Status::System(errno, "connecting");
  const Result<UniqueFd> there = FindSocket(address.host);
  if (!there.ok()) return there.status();
  // Through the descriptor: the name may mean another one by now.
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::snprintf(to.sun_path, sizeof to.sun_path, "/proc/self/fd/%d",
                there->get());
  const int error =
      ConnectOne(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to, cancel);
  if (error != 0) return Status::System(error, "connecting");
  return fd;
}

}  // namespace

Result<UniqueFd> ConnectTo(const net::Address& address, int cancel) {
  if (address.is_unix()) return ConnectUnix(address, cancel);
  addrinfo hints{};
  const bool udp = address.transport == net::Transport::kUdp;
  hints.ai_socktype = udp ? SOCK_DGRAM : SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int rc =
      ::getaddrinfo(address.host.c_str(), address.port.c_str(), &hints, &found);
  if (rc != 0) {
    return Status::SystemSaid(
        EHOSTUNREACH,
        std::string("the name cannot be resolved (") +
            (rc == EAI_SYSTEM ? "system error" : ::gai_strerror(rc)) + ")");
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list(
      found, &::freeaddrinfo);
  int error = EHOSTUNREACH;
  int tried = 0;
  for (const addrinfo* one = list.get();
       one != nullptr && tried < kMaxAddresses; one = one->ai_next, ++tried) {
    UniqueFd fd(::socket(one->ai_family,
                         hints.ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!fd) {
      error = errno;
      continue;
    }
    error = ConnectOne(fd.get(), one->ai_addr, one->ai_addrlen, cancel);
    if (error == 0) {
      if (!udp) net::SetLiveness(fd.get());
      return fd;
    }
    if (error == ECANCELED) break;
  }
  return Status::System(error, "connecting");
}

}  // namespace tracefs
