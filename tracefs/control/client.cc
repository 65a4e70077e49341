#include "tracefs/control/client.h"

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
constexpr size_t kMaxAnswerBytes = size_t{256} << 20;

Status SetPatience(int fd, std::chrono::seconds patience) {
  const timeval time = {patience.count(), 0};
  for (const int option : {SO_RCVTIMEO, SO_SNDTIMEO}) {
    if (::setsockopt(fd, SOL_SOCKET, option, &time, sizeof time) != 0) {
      return Status::System(errno, "control socket");
    }
  }
  return Status::Ok();
}

Status NoAnswer(int error) {
  if (error == EAGAIN) {
    return Status::SystemSaid(
        ETIMEDOUT,
        "the mount does not answer; it may be waiting for one of its outputs "
        "(tracefs-ctl MNT stats), or hang");
  }
  return Status::System(error, "talking to the mount");
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
  if (Status s = SetPatience(fd.get(), patience); !s.ok()) return s;
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
  return ControlClient(std::move(fd));
}

Result<ControlClient> ControlClient::Connect(const std::string& path,
                                             std::chrono::seconds patience) {
  const Result<MountIdentity> mount = IdentifyMount(path);
  if (!mount.ok()) return mount.status();
  Status why;
  for (const std::string& directory : ControlDirectories(mount->owner)) {
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
    case EACCES:
      return Status::SystemSaid(
          EACCES,
          "only root and the user who mounted it may control a mount (" +
              why.message() + ")");
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

Status ControlClient::Send(std::string_view text,
                           std::span<const int> files) const {
  if (files.size() > kMaxRequestFiles) {
    return Status::Invalid("more than " + std::to_string(kMaxRequestFiles) +
                           " files");
  }
  while (!text.empty()) {
    const ssize_t n = SendWithFiles(fd_.get(), AsBytes(text), files);
    // A server that refuses says why and does not read.
    if (n < 0 && (errno == EPIPE || errno == ECONNRESET)) break;
    if (n < 0) return NoAnswer(errno);
    text.remove_prefix(static_cast<size_t>(n));
    files = {};
  }
  return Status::Ok();
}

// Takes no byte of what follows the line: that may be a stream.
Result<std::string> ControlClient::ReadLine() const {
  std::string line;
  std::array<char, 65536> buffer;
  while (line.size() < kMaxAnswerBytes) {
    ssize_t n = ::recv(fd_.get(), buffer.data(), buffer.size(), MSG_PEEK);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return NoAnswer(errno);
    if (n == 0) {
      return Status::SystemSaid(ECONNRESET, "the mount ended the connection");
    }
    const char* const end = std::find(buffer.data(), buffer.data() + n, '\n');
    const bool whole = end != buffer.data() + n;
    n = ::recv(fd_.get(), buffer.data(),
               static_cast<size_t>(end - buffer.data()) + (whole ? 1 : 0), 0);
    if (n < 0) return NoAnswer(errno);
    line.append(buffer.data(), static_cast<size_t>(n));
    if (whole && line.back() == '\n') return line;
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
  if (Status s = Send(line, files); !s.ok()) return s;
  Result<std::string> answer = ReadLine();
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

UniqueFd ControlClient::TakeStream() {
  const timeval forever = {0, 0};
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &forever, sizeof forever);
  return std::move(fd_);
}

}  // namespace tracefs
