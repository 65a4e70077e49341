#include "drivers/output/remote/dialer.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <span>
#include <vector>

#include "drivers/output/remote/connect.h"
#include "drivers/output/remote/helper_process.h"
#include "tracefs/base/clock.h"
#include "tracefs/base/passed_files.h"

namespace tracefs {
namespace {

constexpr int kAnswerMs = 20'000;

class DirectDialer final : public Dialer {
 public:
  explicit DirectDialer(net::Address address) : address_(std::move(address)) {}
  Result<UniqueFd> Dial(int cancel) override {
    return ConnectTo(address_, cancel);
  }

 private:
  const net::Address address_;
};

[[noreturn]] void RunProcess(UniqueFd socket, const net::Address& address) {
  uint32_t request;
  while (TakeDial(socket.get(), &request)) {
    // What the daemon says meanwhile, its end included, ends the attempt.
    AnswerDial(socket.get(), request, ConnectTo(address, socket.get()));
  }
  ::_exit(0);
}

// --- The daemon's side.

class ProcessDialer final : public Dialer {
 public:
  // The process ends when it sees that we are gone.
  ProcessDialer(HelperKind kind, const std::string& address, UniqueFd keeper)
      : link_(kind, "connects to " + address, std::move(keeper)) {}

  Result<UniqueFd> Dial(int cancel) override {
    Result<UniqueFd> fd = DialOnce(cancel);
    // It died over this, or before: another may be there.
    return fd.ok() || fd.status().error() != EPIPE ? std::move(fd)
                                                   : DialOnce(cancel);
  }

  void KeepIn(std::atomic<int32_t>& place) override {
    if (!link_.is_kept()) link_.KeepIn(place);
  }

 private:
  Result<UniqueFd> DialOnce(int cancel) {
    const HelperLink::Socket socket = link_.Await(cancel);
    // Another process may have asked before, from a copy of this.
    if (requests_ == 0) requests_ = static_cast<uint32_t>(MonotonicNs());
    const uint32_t request = ++requests_;
    if (socket == nullptr) {
      pollfd stop = {cancel, POLLIN, 0};
      return ::poll(&stop, 1, 0) > 0 ? Status::System(ECANCELED, "connecting")
                                     : Gone();
    }
    if (::send(socket->get(), &request, sizeof request, MSG_NOSIGNAL) < 0) {
      return Gone();
    }
    for (;;) {
      std::array<pollfd, 2> ready = {pollfd{socket->get(), POLLIN, 0},
                                     pollfd{cancel, POLLIN, 0}};
      const int n = ::poll(ready.data(), ready.size(), kAnswerMs);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0)
        return Status::System(n < 0 ? errno : ETIMEDOUT, "connecting");
      if (ready[1].revents != 0) return Status::System(ECANCELED, "connecting");
      DialAnswer answer;
      std::vector<UniqueFd> files;
      if (ReceiveWithFiles(socket->get(),
                           std::as_writable_bytes(std::span(&answer, 1)),
                           &files) != sizeof answer) {
        return Gone();
      }
      answer.text.back() = '\0';
      // An attempt that was given up earlier.
      if (answer.request != request) continue;
      if (answer.error != 0) {
        return Status::SystemSaid(answer.error, answer.text.data());
      }
      if (files.empty()) return Status::System(EMFILE, "connecting");
      return std::move(files.front());
    }
  }

  static Status Gone() {
    return Status::System(EPIPE, "the process that makes connections is gone");
  }

  HelperLink link_;
  uint32_t requests_ = 0;
};

}  // namespace

std::unique_ptr<Dialer> MakeDirectDialer(net::Address address) {
  return std::make_unique<DirectDialer>(std::move(address));
}

std::unique_ptr<Dialer> MakeProcessDialer(HelperKind kind,
                                          const std::string& address,
                                          UniqueFd keeper) {
  return std::make_unique<ProcessDialer>(kind, address, std::move(keeper));
}

Result<std::unique_ptr<Dialer>> StartDialerProcess(net::Address address) {
  Result<UniqueFd> keeper = ForkDialer(address);
  if (!keeper.ok()) return keeper.status();
  return MakeProcessDialer(HelperKind::kDial, address.Text(),
                           *std::move(keeper));
}

Result<UniqueFd> ForkDialer(const net::Address& address) {
  return ForkHelper("tracefs-dial", address.Text(), [&](UniqueFd socket) {
    RunProcess(std::move(socket), address);
  });
}

}  // namespace tracefs
