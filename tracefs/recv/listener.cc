#include "tracefs/recv/listener.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sstream>

#include "tracefs/base/units.h"

namespace tracefs {
namespace {

constexpr int kBacklog = 1024;

sockaddr_un UnixAddress(const std::string& path) {
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  std::memcpy(at.sun_path, path.data(), path.size());
  return at;
}

// Removes a socket whose listener is gone.
void RemoveStale(const std::string& path, int type) {
  struct stat st;
  if (::lstat(path.c_str(), &st) != 0 || !S_ISSOCK(st.st_mode)) return;
  const UniqueFd probe(::socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  const sockaddr_un at = UnixAddress(path);
  if (probe &&
      ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&at),
                sizeof at) != 0 &&
      errno == ECONNREFUSED) {
    ::unlink(path.c_str());
  }
}

Result<UniqueFd> ListenUnix(const net::Address& address) {
  const std::string text = address.Text();
  const int type = address.transport == net::Transport::kSeqpacket
                       ? SOCK_SEQPACKET
                       : SOCK_STREAM;
  RemoveStale(address.host, type);
  UniqueFd fd(::socket(AF_UNIX, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return Status::System(errno, text);
  const sockaddr_un at = UnixAddress(address.host);
  const mode_t before = ::umask(0177);
  const int rc =
      ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at);
  const int error = errno;
  ::umask(before);
  if (rc != 0) return Status::System(error, text);
  if (::listen(fd.get(), kBacklog) != 0) return Status::System(errno, text);
  return fd;
}

std::string NumericHost(const sockaddr* address, socklen_t length,
                        std::string* port) {
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> service{};
  if (::getnameinfo(address, length, host.data(), host.size(), service.data(),
                    service.size(), NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "?";
  }
  *port = service.data();
  return host.data();
}

// "10.0.0.7", also where that comes through IPv6, or "2001:db8::/64": the owner
// of one IPv6 address has all that begin like it.
std::string NetworkOf(const sockaddr_storage& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const auto& six = reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  const auto& four = reinterpret_cast<const sockaddr_in&>(address).sin_addr;
  const bool mapped =
      address.ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&six);
  if (address.ss_family == AF_INET || mapped) {
    constexpr size_t kMapped = 12;
    const void* const bytes = &four;
    ::inet_ntop(AF_INET, mapped ? six.s6_addr + kMapped : bytes, text.data(),
                text.size());
    return text.data();
  }
  if (address.ss_family != AF_INET6) return "?";
  in6_addr network = six;
  constexpr size_t kHalf = sizeof network.s6_addr / 2;
  std::memset(network.s6_addr + kHalf, 0, kHalf);
  ::inet_ntop(AF_INET6, &network, text.data(), text.size());
  return std::string(text.data()) + "/64";
}

}  // namespace

Result<UniqueFd> Listen(const net::Address& address) {
  if (address.is_unix()) return ListenUnix(address);
  const std::string text = address.Text();
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | AI_PASSIVE;
  addrinfo* found = nullptr;
  const int rc =
      ::getaddrinfo(address.host.empty() ? nullptr : address.host.c_str(),
                    address.port.c_str(), &hints, &found);
  if (rc != 0) {
    return Status::System(EADDRNOTAVAIL, text + ": " + ::gai_strerror(rc));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list(
      found, &::freeaddrinfo);
  // "Everywhere" is one socket for both families, where there are both.
  const addrinfo* one = list.get();
  if (address.host.empty()) {
    for (const addrinfo* a = list.get(); a != nullptr; a = a->ai_next) {
      if (a->ai_family == AF_INET6) one = a;
    }
  }
  for (int attempt = 0; attempt < 2; ++attempt, one = list.get()) {
    UniqueFd fd(::socket(one->ai_family,
                         SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const int on = 1;
    const int off = 0;
    if (fd) {
      ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
      if (one->ai_family == AF_INET6 && address.host.empty()) {
        ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
      }
    }
    if (!fd || ::bind(fd.get(), one->ai_addr, one->ai_addrlen) != 0 ||
        ::listen(fd.get(), kBacklog) != 0) {
      // Without IPv6 there is still IPv4.
      if (errno == EAFNOSUPPORT && attempt == 0) continue;
      return Status::System(errno, text);
    }
    return fd;
  }
  return Status::System(EAFNOSUPPORT, text);
}

Result<std::vector<HandedSocket>> TakeHandedSockets() {
  constexpr int kFirst = 3;
  const auto take = [](const char* name) {
    const char* const value = std::getenv(name);
    std::string text = value == nullptr ? "" : value;
    ::unsetenv(name);
    return text;
  };
  const std::string pid = take("LISTEN_PID");
  const std::string count = take("LISTEN_FDS");
  const std::string names = take("LISTEN_FDNAMES");
  std::vector<HandedSocket> sockets;
  const auto wanted = ParseUnsigned(count);
  if (pid != std::to_string(::getpid()) || !wanted || *wanted > 64) {
    return sockets;
  }
  std::istringstream each(names);
  for (int fd = kFirst; fd < kFirst + static_cast<int>(*wanted); ++fd) {
    std::string name;
    std::getline(each, name, ':');
    HandedSocket socket;
    socket.fd.Reset(fd);
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
    int type = 0;
    int listens = 0;
    socklen_t length = sizeof type;
    sockaddr_storage at{};
    socklen_t at_length = sizeof at;
    if (::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) != 0 ||
        ::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) != 0 ||
        ::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &at_length) != 0) {
      return Status::System(
          errno, "the service manager's descriptor " + std::to_string(fd));
    }
    if (listens == 0) {
      return Status::Invalid("the service manager's descriptor " +
                             std::to_string(fd) +
                             " is no listening socket; Accept=no is needed");
    }
    if (at.ss_family == AF_UNIX) {
      socket.address.transport = type == SOCK_SEQPACKET
                                     ? net::Transport::kSeqpacket
                                     : net::Transport::kUnix;
      socket.address.host = reinterpret_cast<sockaddr_un*>(&at)->sun_path;
    } else {
      socket.address.transport =
          name == "tls" ? net::Transport::kTls : net::Transport::kTcp;
      socket.address.host = NumericHost(reinterpret_cast<sockaddr*>(&at),
                                        at_length, &socket.address.port);
    }
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
    ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
    sockets.push_back(std::move(socket));
  }
  return sockets;
}

std::string ListenText(const net::Address& address, int fd) {
  if (address.is_unix()) return address.Text();
  sockaddr_storage at{};
  socklen_t length = sizeof at;
  net::Address real = address;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &length) == 0) {
    real.host =
        NumericHost(reinterpret_cast<sockaddr*>(&at), length, &real.port);
  }
  return real.Text();
}

PeerText DescribePeer(const net::Address& address, int fd) {
  PeerText peer;
  if (address.is_unix()) {
    ucred who{};
    socklen_t length = sizeof who;
    if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length) == 0) {
      peer.uid = who.uid;
    }
    peer.host = "uid " + std::to_string(peer.uid);
    peer.full = peer.host + ", pid " + std::to_string(who.pid);
    return peer;
  }
  sockaddr_storage at{};
  socklen_t length = sizeof at;
  std::string host;
  std::string port;
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&at), &length) == 0) {
    host = NumericHost(reinterpret_cast<sockaddr*>(&at), length, &port);
  }
  peer.host = NetworkOf(at);
  peer.full = host + ':' + port;
  return peer;
}

}  // namespace tracefs
