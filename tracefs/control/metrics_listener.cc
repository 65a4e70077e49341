#include "tracefs/control/metrics_listener.h"

#include <fcntl.h>
#include <grp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>

#include "tracefs/base/ownership.h"
#include "tracefs/base/units.h"

namespace tracefs {
namespace {

constexpr int kMetricsBacklog = 64;
constexpr std::string_view kUnix = "unix:";

Status Malformed(const std::string& address) {
  return Status::Invalid(
      "--metrics is HOST:PORT, [HOST]:PORT or unix:PATH, "
      "not '" +
      address + "'");
}

UniqueFd MakeSocket(int family) {
  return UniqueFd(
      ::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

// A socket file of ours without a listener.
bool IsLeftover(const sockaddr_un& address) {
  const UniqueFd there(
      ::open(address.sun_path, O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!there ||
      !CheckOwnership(there.get(), {.type = S_IFSOCK, .forbidden = 0}, "")
           .ok()) {
    return false;
  }
  const UniqueFd probe = MakeSocket(AF_UNIX);
  return probe.valid() &&
         ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address),
                   sizeof address) != 0 &&
         errno == ECONNREFUSED;
}

Result<gid_t> FindGroup(const std::string& name) {
  if (const group* const found = ::getgrnam(name.c_str())) {
    return found->gr_gid;
  }
  const std::optional<uint64_t> number = ParseUnsigned(name);
  if (number && *number < static_cast<gid_t>(-1)) {
    return static_cast<gid_t>(*number);
  }
  return Status::Invalid("--metrics-group: there is no group '" + name + "'");
}

// Lets the group use the socket that is bound at `path`.
Status ShareWith(gid_t group, const std::string& path) {
  const UniqueFd there(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  const std::string what = "--metrics unix:" + path;
  if (!there) return Status::System(errno, what);
  // A user who can write to the directory may have exchanged it.
  if (Status s = CheckOwnership(there.get(),
                                {.type = S_IFSOCK, .one_name = true}, what);
      !s.ok()) {
    return s;
  }
  const std::string link = "/proc/self/fd/" + std::to_string(there.get());
  if (::fchownat(there.get(), "", static_cast<uid_t>(-1), group,
                 AT_EMPTY_PATH) != 0 ||
      ::chmod(link.c_str(), 0660) != 0) {
    return Status::System(errno, what + ": group");
  }
  return Status::Ok();
}

Result<MetricsListener> ListenAtPath(const std::string& given,
                                     const std::string& group) {
  const std::string path = given.substr(kUnix.size());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty()) return Malformed(given);
  if (path.size() >= sizeof address.sun_path) {
    return Status::Invalid("--metrics: the path of a socket has at most " +
                           std::to_string(sizeof address.sun_path - 1) +
                           " bytes");
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  MetricsListener listener{.fd = MakeSocket(AF_UNIX), .address = given};
  if (IsLeftover(address)) ::unlink(path.c_str());
  // The mode goes with the descriptor.
  if (!listener.fd || ::fchmod(listener.fd.get(), 0600) != 0 ||
      ::bind(listener.fd.get(), reinterpret_cast<const sockaddr*>(&address),
             sizeof address) != 0 ||
      ::listen(listener.fd.get(), kMetricsBacklog) != 0) {
    return Status::System(errno, "--metrics " + given);
  }
  if (!group.empty()) {
    const Result<gid_t> number = FindGroup(group);
    const Status opened =
        number.ok() ? ShareWith(*number, path) : number.status();
    if (!opened.ok()) {
      ::unlink(path.c_str());
      return opened;
    }
  }
  return listener;
}

// The port the socket has.
uint16_t PortOf(int fd) {
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
    return 0;
  }
  // Both families have it in the same place.
  return ntohs(reinterpret_cast<const sockaddr_in&>(bound).sin_port);
}

}  // namespace

Result<MetricsListener> ListenForMetrics(const std::string& given,
                                         const std::string& group) {
  if (given.starts_with(kUnix)) return ListenAtPath(given, group);
  const size_t colon = given.rfind(':');
  if (colon == std::string::npos || colon == 0) return Malformed(given);
  std::string host = given.substr(0, colon);
  const std::string port = given.substr(colon + 1);
  const std::optional<uint64_t> number = ParseUnsigned(port);
  if (!number || *number > 65535) return Malformed(given);
  const bool brackets = host.front() == '[' && host.back() == ']';
  // More than one colon is an IPv6 address, and where its port begins is
  // anyone's guess.
  if (!brackets && host.find(':') != std::string::npos) return Malformed(given);
  if (brackets) host = host.substr(1, host.size() - 2);

  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error =
          ::getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
      error != 0) {
    return Status::Invalid("--metrics " + given + ": " + ::gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> addresses(
      found, &::freeaddrinfo);
  Status why;
  for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
    UniqueFd fd = MakeSocket(a->ai_family);
    const int on = 1;
    if (fd.valid() &&
        ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
        ::bind(fd.get(), a->ai_addr, a->ai_addrlen) == 0 &&
        ::listen(fd.get(), kMetricsBacklog) == 0) {
      const std::string at =
          given.substr(0, colon + 1) + std::to_string(PortOf(fd.get()));
      return MetricsListener{.fd = std::move(fd), .address = at};
    }
    why = Status::System(errno, "--metrics " + given);
  }
  return why.ok() ? Malformed(given) : why;
}

}  // namespace tracefs
