#include "tracefs/base/passed_files.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace tracefs {
namespace {

struct Control {
  alignas(cmsghdr)
      std::array<char, CMSG_SPACE(kMaxPassedFiles * sizeof(int))> bytes{};
};

}  // namespace

ssize_t SendWithFiles(int socket, ByteSpan bytes, std::span<const int> files,
                      int flags) {
  iovec piece = {const_cast<std::byte*>(bytes.data()), bytes.size()};
  Control control;
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  if (!files.empty()) {
    message.msg_control = control.bytes.data();
    message.msg_controllen = CMSG_SPACE(files.size_bytes());
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(files.size_bytes());
    std::memcpy(CMSG_DATA(header), files.data(), files.size_bytes());
  }
  ssize_t n;
  do {
    n = ::sendmsg(socket, &message, flags | MSG_NOSIGNAL);
  } while (n < 0 && errno == EINTR);
  return n;
}

ssize_t ReceiveWithFiles(int socket, std::span<std::byte> buffer,
                         std::vector<UniqueFd>* files, bool* cut, int flags) {
  iovec piece = {buffer.data(), buffer.size()};
  Control control;
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes.data();
  message.msg_controllen = control.bytes.size();
  ssize_t n;
  do {
    n = ::recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC);
  } while (n < 0 && errno == EINTR);
  if (n < 0) return n;
  // Received files are owned, or closed, before anything else is examined.
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr;
       c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
      files->emplace_back(fd);
    }
  }
  if (cut != nullptr) *cut = (message.msg_flags & MSG_CTRUNC) != 0;
  return n;
}

}  // namespace tracefs
