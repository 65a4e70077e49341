// tracefs-recv: receives traces. See receiver.h; docs/man/tracefs-recv.1.
#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <optional>

#include "tracefs/command/front.h"
#include "tracefs/crypto/cipher.h"
#include "tracefs/crypto/key_source.h"
#include "tracefs/daemon/account.h"
#include "tracefs/daemon/sandbox.h"
#include "tracefs/export/output_buffer.h"
#include "tracefs/recv/file_keeper.h"
#include "tracefs/recv/live_printer.h"
#include "tracefs/recv/options.h"
#include "tracefs/recv/receiver.h"

namespace tracefs {
namespace {

// Standard output. Its reader may be slow, and senders then wait; but the
// signal that ends us is seen meanwhile.
class StoppableOutput final : public OutputBuffer {
 public:
  StoppableOutput(int fd, int stop) : fd_(fd), stop_(stop) {}

 protected:
  Status Emit(std::string_view text) override {
    while (!text.empty()) {
      std::array<pollfd, 2> ready = {pollfd{fd_, POLLOUT, 0},
                                     pollfd{stop_, POLLIN, 0}};
      if (::poll(ready.data(), ready.size(), -1) < 0 && errno != EINTR) {
        return Status::System(errno, "standard output");
      }
      if (ready[0].revents == 0) {
        if (ready[1].revents != 0) {
          return Status::System(ECANCELED, "standard output");
        }
        continue;
      }
      // So much a pipe takes at once when it is writable at all.
      const size_t piece = std::min<size_t>(text.size(), 4096);
      const ssize_t n = ::write(fd_, text.data(), piece);
      if (n < 0 && errno != EINTR && errno != EAGAIN) {
        return Status::System(errno, "standard output");
      }
      if (n > 0) text.remove_prefix(static_cast<size_t>(n));
    }
    return Status::Ok();
  }

 private:
  const int fd_;
  const int stop_;
};

UniqueFd BlockSignals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int s : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&signals, s);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  return UniqueFd(::signalfd(-1, &signals, SFD_CLOEXEC));
}

// A descriptor for each client, and one for its file.
void RaiseDescriptorLimit(size_t clients) {
  rlimit limit;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const rlim_t wanted = 2 * clients + 64;
  limit.rlim_cur = std::min(limit.rlim_max, std::max(limit.rlim_cur, wanted));
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

Result<std::unique_ptr<Keeper>> MakeKeeper(const RecvOptions& options,
                                           OutputBuffer& out) {
  if (!options.out.empty()) {
    return MakeFileKeeper({.directory = options.out,
                           .max_trace_bytes = options.max_trace_bytes,
                           .max_traces = options.max_traces});
  }
  auto keys = std::make_shared<KeyRing>();
  if (Status s = AddKeyArguments(options.keys, "--key", keys.get()); !s.ok()) {
    return s;
  }
  return MakeLivePrinter({.format = options.format,
                          .keys = std::move(keys),
                          .max_block_bytes = options.limits.max_block_bytes,
                          .max_memory = options.max_memory},
                         out);
}

// From here on the process has what is open and nothing else: what comes next
// is read from the network.
Status GiveUpRights(const RecvOptions& options,
                    std::unique_ptr<Sandbox>* sandbox) {
  // Read when first needed, which is too late then.
  ::tzset();
  if (!options.format.empty()) {
    static_cast<void>(Cipher::Create(CipherId::kBlowfishCbc));
  }
  std::optional<Account> account;
  if (!options.user.empty()) {
    Result<Account> found = FindAccount(options.user);
    if (!found.ok()) return found.status().Prefixed("--user");
    account = *std::move(found);
  }
  const Account* const who = account ? &*account : nullptr;
  if (!options.sandbox) return who != nullptr ? Become(*who) : Status::Ok();
  auto entered = Sandbox::Enter({.receiver = true, .account = who});
  if (!entered.ok()) return entered.status();
  *sandbox = *std::move(entered);
  return Status::Ok();
}

// Large pieces are given back as soon as they are freed: the C library would
// keep those for later that were once asked for, in each of its arenas.
void GiveMemoryBack() {
  ::mallopt(M_MMAP_THRESHOLD, 256 << 10);
  ::mallopt(M_ARENA_MAX, 2);
}

Status Run(const RecvOptions& options) {
  GiveMemoryBack();
  const UniqueFd stop = BlockSignals();
  if (!stop) return Status::System(errno, "signalfd");
  RaiseDescriptorLimit(options.limits.max_clients);
  std::unique_ptr<net::TlsContext> tls;
  if (!options.tls.ca.empty()) {
    auto made =
        net::TlsContext::Create(net::TlsContext::Role::kReceiver, options.tls);
    if (!made.ok()) return made.status();
    tls = std::move(*made);
  }
  StoppableOutput out(STDOUT_FILENO, stop.get());
  auto keeper = MakeKeeper(options, out);
  if (!keeper.ok()) return keeper.status();
  auto receiver = Receiver::Create({.listen = options.listen,
                                    .limits = options.limits,
                                    .tls = tls.get(),
                                    .quiet = options.quiet},
                                   **keeper);
  if (!receiver.ok()) return receiver.status();
  std::unique_ptr<Sandbox> sandbox;
  if (Status s = GiveUpRights(options, &sandbox); !s.ok()) return s;
  // Scripts wait for these lines.
  for (const std::string& address : (*receiver)->addresses()) {
    std::fprintf(stderr, "tracefs-recv: listening on %s\n", address.c_str());
  }
  const Status status = (*receiver)->Run(stop.get());
  // A reader that has seen enough (head), and a signal while it was slow.
  if (status.error() == EPIPE || status.error() == ECANCELED) {
    return Status::Ok();
  }
  return status;
}

}  // namespace
}  // namespace tracefs

int main(int argc, char** argv) {
  using namespace tracefs;  // NOLINT: a main
  return RunCommand({"tracefs-recv", &RecvHelp}, ParseRecvOptions(argc, argv),
                    [](const RecvOptions& options) {
                      return Finish("tracefs-recv", Run(options));
                    });
}
