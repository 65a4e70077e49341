#include "tracefs/control/client.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "tracefs/base/passed_files.h"
#include "tracefs/control/answer.h"
#include "tracefs/control/request.h"

namespace tracefs {
namespace {

constexpr int kPeerPidfd = 77;  // SO_PEERPIDFD; libc may be older
// More than 64 tracers with a config of usual size each.
constexpr size_t kMaxAnswerBytes = size_t{32} << 20;

Status NoAnswer(int error) {
  if (error == EAGAIN || error == ETIMEDOUT) {
    return Status::SystemSaid(
        ETIMEDOUT,
        "the mount does not answer; it may be waiting for one of its outputs "
        "(tracefs-ctl MNT stats), or hang");
  }
  return Status::System(error, "talking to the mount");
}

// The other end of another user's mount is that user's program.
Status NotOwn(const std::string& path, const MountIdentity& mount) {
  if (::geteuid() != 0) {
    return Status::SystemSaid(
        EACCES, "only root and the user who mounted it may control '" + path +
                    "': it was mounted by user " + std::to_string(mount.owner));
  }
  return Status::SystemSaid(
      EPERM, "'" + path + "' was mounted by user " +
                 std::to_string(mount.owner) +
                 ": --as-owner lets root act on it, with the rights of that "
                 "user");
}

}  // namespace

Result<ControlClient> ControlClient::ConnectSocket(
    const std::string& socket_path, uid_t owner,
    std::chrono::seconds patience) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket_path.size() >= sizeof address.sun_path) {
    return Status::Invalid("control socket '" + socket_path +
                           "': path too long");
  }
  std::memcpy(address.sun_path, socket_path.data(), socket_path.size());
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return Status::System(errno, "control socket");
  // For connect(2), where the queue of the listener is full.
  const timeval time = {patience.count(), 0};
  if (::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time) !=
      0) {
    return Status::System(errno, "control socket");
  }
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address),
                sizeof address) != 0) {
    return Status::System(errno, "control socket '" + socket_path + "'");
  }
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return Status::System(errno, "control socket '" + socket_path + "'");
  }
  if (peer.uid != 0 && peer.uid != owner) {
    return Status::SystemSaid(
        EPERM, "control socket '" + socket_path + "' is that of user " +
                   std::to_string(peer.uid) + ", who did not mount this");
  }
  return ControlClient(std::move(fd), patience);
}

Result<ControlClient> ControlClient::Connect(const std::string& path,
                                             std::chrono::seconds patience) {
  const Result<MountIdentity> mount = IdentifyMount(path);
  if (!mount.ok()) return mount.status();
  if (mount->owner != ::geteuid()) return NotOwn(path, *mount);
  Status why;
  for (const std::string& directory : EveryControlDirectory(mount->owner)) {
    if (Result<UniqueFd> safe =
            OpenControlDirectory(directory, mount->owner, /*create=*/false);
        !safe.ok()) {
      if (why.ok() || safe.status().error() != ENOENT) why = safe.status();
      continue;
    }
    Result<ControlClient> client = ConnectSocket(
        directory + '/' + mount->SocketName(), mount->owner, patience);
    if (client.ok()) {
      client->mount_ = *mount;
      return client;
    }
    why = client.status();
    if (why.error() != ENOENT && why.error() != ECONNREFUSED) break;
  }
  switch (why.error()) {
    case ENOENT:
    case ECONNREFUSED:
      return Status::SystemSaid(
          why.error(),
          "the mount at '" + path +
              "' has no control socket: its daemon has ended or runs in "
              "another container (" +
              why.message() + ")");
    default:
      return why;
  }
}

// However slow the other end is: until `deadline`, and no longer.
Status ControlClient::Wait(short events, Clock::time_point deadline) const {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
        std::max<Clock::duration>(deadline - Clock::now(), {}));
    pollfd ready = {.fd = fd_.get(), .events = events, .revents = 0};
    const int n = ::poll(&ready, 1, static_cast<int>(left.count()));
    if (n > 0) return Status::Ok();
    if (n == 0) return NoAnswer(ETIMEDOUT);
    if (errno != EINTR) return NoAnswer(errno);
  }
}

Status ControlClient::Send(std::string_view text, std::span<const int> files,
                           Clock::time_point deadline) const {
  if (files.size() > kMaxRequestFiles) {
    return Status::Invalid("more than " + std::to_string(kMaxRequestFiles) +
                           " files");
  }
  while (!text.empty()) {
    if (Status s = Wait(POLLOUT, deadline); !s.ok()) return s;
    const ssize_t n =
        SendWithFiles(fd_.get(), AsBytes(text), files, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN) continue;
    // A server that refuses says why and does not read.
    if (n < 0 && (errno == EPIPE || errno == ECONNRESET)) break;
    if (n < 0) return NoAnswer(errno);
    text.remove_prefix(static_cast<size_t>(n));
    files = {};
  }
  return Status::Ok();
}

// Takes no byte after the line: a stream may follow.
Result<std::string> ControlClient::ReadLine(Clock::time_point deadline) const {
  std::string line;
  std::array<char, 65536> buffer;
  while (line.size() < kMaxAnswerBytes) {
    if (Status s = Wait(POLLIN, deadline); !s.ok()) return s;
    ssize_t n = ::recv(fd_.get(), buffer.data(), buffer.size(),
                       MSG_PEEK | MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n < 0) return NoAnswer(errno);
    if (n == 0) {
      return Status::SystemSaid(
          ECONNRESET,
          "the mount ended the connection; whether it did what "
          "was asked is not known (tracefs-ctl MNT list)");
    }
    const char* const end = std::find(buffer.data(), buffer.data() + n, '\n');
    const bool whole = end != buffer.data() + n;
    n = ::recv(fd_.get(), buffer.data(),
               static_cast<size_t>(end - buffer.data()) + (whole ? 1 : 0), 0);
    if (n < 0) return NoAnswer(errno);
    line.append(buffer.data(), static_cast<size_t>(n));
    if (line.back() == '\n') return line;
  }
  return Status::Corrupt("the mount's answer is too long");
}

Result<std::string> ControlClient::Call(std::string_view request,
                                        std::span<const int> files) {
  std::string line(request);
  line += '\n';
  if (line.size() > kMaxRequestBytes) {
    return Status::Invalid("the request is longer than " +
                           std::to_string(kMaxRequestBytes) + " bytes");
  }
  const Clock::time_point deadline = Clock::now() + patience_;
  if (Status s = Send(line, files, deadline); !s.ok()) return s;
  Result<std::string> answer = ReadLine(deadline);
  if (!answer.ok()) return answer.status();
  Result<ParsedAnswer> parsed = ParseAnswer(*answer);
  if (!parsed.ok()) return parsed.status();
  if (!parsed->status.ok()) return parsed->status;
  return std::move(parsed->result);
}

UniqueFd ControlClient::ServerPidfd() const {
  int pidfd = -1;
  socklen_t size = sizeof pidfd;
  // Linux 6.5: of that very process, even if its number is used again.
  if (::getsockopt(fd_.get(), SOL_SOCKET, kPeerPidfd, &pidfd, &size) == 0) {
    return UniqueFd(pidfd);
  }
  ucred peer{};
  size = sizeof peer;
  if (::getsockopt(fd_.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0 ||
      peer.pid <= 0) {
    return {};
  }
  return UniqueFd(
      static_cast<int>(::syscall(SYS_pidfd_open, peer.pid, /*flags=*/0)));
}

UniqueFd ControlClient::TakeStream() { return std::move(fd_); }

}  // namespace tracefs
