#include "tracefs/daemon/log_connector.h"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "tracefs/base/detached_child.h"
#include "tracefs/base/helper_keeper.h"
#include "tracefs/base/log_socket.h"
#include "tracefs/base/passed_files.h"
#include "tracefs/daemon/capabilities.h"

namespace tracefs {
namespace {

// Nothing of the daemon's stays here, nor any power. False if it has kept some.
bool Isolate(int socket, const Account* account) {
  DetachChild("tracefs-log", {socket});
  if (account != nullptr && !Become(*account).ok()) return false;
  if (HasCapability(CAP_SETPCAP) && !LimitCapabilities(0).ok()) return false;
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

void ServeLog(UniqueFd socket, const std::string& path) {
  DetachChild("tracefs-log", {socket.get()});
  // One byte, whatever it is; descriptors that come with it are not taken.
  std::byte question{};
  const auto asked = [&] {
    ssize_t n;
    do {
      n = ::recv(socket.get(), &question, 1, MSG_TRUNC);
    } while (n < 0 && errno == EINTR);
    return n == 1;
  };
  while (asked()) {
    const Result<UniqueFd> fd = ConnectLog(path);
    const int error = fd.ok() ? 0 : fd.status().error();
    std::vector<int> files;
    if (fd.ok()) files.push_back(fd->get());
    if (SendWithFiles(socket.get(), std::as_bytes(std::span(&error, 1)),
                      files) < 0) {
      break;
    }
  }
}

}  // namespace

Result<std::unique_ptr<LogConnector>> LogConnector::Start(
    const std::string& path, const Account* account) {
  std::array<int, 2> ends;
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) !=
      0) {
    return Status::System(errno, "the log's socketpair");
  }
  UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  PrepareToDetach();
  const pid_t child = ::fork();
  if (child < 0) return Status::System(errno, "the log's process");
  if (child == 0) {
    ours.Reset();
    if (!Isolate(theirs.get(), account)) ::_exit(1);
    KeepHelper(std::move(theirs), KeeperEnd::kWithDaemon,
               [&](UniqueFd socket) { ServeLog(std::move(socket), path); });
  }
  return std::unique_ptr<LogConnector>(new LogConnector(path, std::move(ours)));
}

Result<UniqueFd> LogConnector::Connect() {
  const std::byte question{};
  const HelperLink::Socket socket = link_.Await();
  if (socket == nullptr ||
      SendWithFiles(socket->get(), std::span(&question, 1), {}) < 0) {
    return Status::System(EPIPE, "the log's process is gone");
  }
  int error = 0;
  std::vector<UniqueFd> files;
  if (ReceiveWithFiles(socket->get(),
                       std::as_writable_bytes(std::span(&error, 1)),
                       &files) != sizeof error) {
    return Status::System(EPIPE, "the log's process is gone");
  }
  if (error != 0) return Status::System(error, "the log's socket");
  if (files.empty()) return Status::System(EMFILE, "the log's socket");
  return std::move(files.front());
}

}  // namespace tracefs
