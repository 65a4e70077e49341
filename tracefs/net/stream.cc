#include "tracefs/net/stream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace tracefs::net {
namespace {

bool IsLater(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

class PlainStream final : public Stream {
 public:
  PlainStream(UniqueFd fd, bool packets)
      : fd_(std::move(fd)), packets_(packets) {}

  Result<Moved> Read(std::span<std::byte> out) override {
    iovec piece = {out.data(), out.size()};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    const ssize_t n = ::recvmsg(fd_.get(), &message, MSG_DONTWAIT);
    if (n < 0) {
      if (IsLater(errno)) return Moved{};
      return Status::System(errno, "receiving");
    }
    if ((message.msg_flags & MSG_TRUNC) != 0) {
      return Status::Corrupt("a packet of more than " +
                             std::to_string(out.size()) + " bytes");
    }
    return Moved{.bytes = static_cast<size_t>(n), .ended = n == 0};
  }

  Result<Moved> Write(ByteSpan bytes) override {
    if (packets_) bytes = bytes.first(std::min(bytes.size(), kMaxPacketBytes));
    const ssize_t n = ::send(fd_.get(), bytes.data(), bytes.size(),
                             MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0) {
      if (IsLater(errno)) return Moved{};
      return Status::System(errno, "sending");
    }
    return Moved{.bytes = static_cast<size_t>(n)};
  }

  short Events(bool read, bool write) const override {
    return static_cast<short>((read ? POLLIN : 0) | (write ? POLLOUT : 0));
  }
  void EndWriting() override { ::shutdown(fd_.get(), SHUT_WR); }
  int fd() const override { return fd_.get(); }

 private:
  const UniqueFd fd_;
  const bool packets_;
};

}  // namespace

std::unique_ptr<Stream> MakePlainStream(UniqueFd fd, bool packets) {
  return std::make_unique<PlainStream>(std::move(fd), packets);
}

void SetLiveness(int fd) {
  const auto set = [fd](int level, int name, int value) {
    static_cast<void>(::setsockopt(fd, level, name, &value, sizeof value));
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 15);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 30'000);
  set(IPPROTO_TCP, TCP_NODELAY, 1);
}

}  // namespace tracefs::net
