// tracefs-recv: receives traces. See receiver.h; docs/man/tracefs-recv.1.
#include <errno.h>
#include <fcntl.h>
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
#include <initializer_list>
#include <memory>
#include <optional>

#include "tracefs/base/file_io.h"
#include "tracefs/base/printable.h"
#include "tracefs/command/front.h"
#include "tracefs/crypto/cipher.h"
#include "tracefs/crypto/key_source.h"
#include "tracefs/daemon/account.h"
#include "tracefs/daemon/sandbox.h"
#include "tracefs/daemon/service_manager.h"
#include "tracefs/export/output_buffer.h"
#include "tracefs/recv/certificate_places.h"
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

UniqueFd SignalsOf(std::initializer_list<int> numbers) {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int s : numbers) ::sigaddset(&signals, s);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  return UniqueFd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
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
                           .max_traces = options.max_traces,
                           .retention = options.retention});
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

// --list: for people and scripts, tabs between.
Status List(const std::string& path) {
  const UniqueFd directory(
      ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return Status::System(errno, "directory '" + path + "'");
  const Result<std::vector<KeptTrace>> all = ListTraces(directory.get());
  if (!all.ok()) return all.status();
  std::string text = "#trace\tsender\tbytes\tlast block\n";
  for (const KeptTrace& trace : *all) {
    std::array<char, 32> when;
    const time_t at = trace.written_s;
    tm utc{};
    ::gmtime_r(&at, &utc);
    ::strftime(when.data(), when.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
    const std::string sender = SenderOf(trace.name);
    text += Printable(trace.name) + '\t' +
            (sender.empty() ? "-" : Printable(sender)) + '\t' +
            std::to_string(trace.bytes) + '\t' + when.data() + '\n';
  }
  return WriteAll(STDOUT_FILENO, AsBytes(text), "standard output");
}

Status Run(const RecvOptions& options) {
  GiveMemoryBack();
  ServiceManager service = ServiceManager::FromEnvironment();
  std::vector<HandedSocket> handed;
  if (options.systemd) {
    Result<std::vector<HandedSocket>> taken = TakeHandedSockets();
    if (!taken.ok()) return taken.status();
    handed = *std::move(taken);
    if (handed.empty() && options.listen.empty()) {
      return Status::Invalid(
          "--systemd: no socket was handed over, and there is no --listen");
    }
    for (const HandedSocket& socket : handed) {
      if (socket.address.transport == net::Transport::kTls &&
          options.tls.ca.empty()) {
        return Status::Invalid(
            "a socket for TLS was handed over: --ca, --cert and --tls-key are "
            "needed");
      }
    }
  }
  // Without certificates there is nothing to take anew, and a hang-up is that
  // of a terminal.
  const bool reloads = options.systemd || !options.tls.ca.empty();
  const UniqueFd stop = reloads ? SignalsOf({SIGTERM, SIGINT})
                                : SignalsOf({SIGTERM, SIGINT, SIGHUP});
  const UniqueFd hang_up = reloads ? SignalsOf({SIGHUP}) : UniqueFd();
  if (!stop || (reloads && !hang_up)) {
    return Status::System(errno, "signalfd");
  }
  RaiseDescriptorLimit(options.limits.max_clients);
  // The last one is for new connections; others are still used by old ones.
  std::vector<std::unique_ptr<net::TlsContext>> tls;
  CertificatePlaces places(options.tls);
  if (!options.tls.ca.empty()) {
    auto made = places.Read();
    if (!made.ok()) return made.status();
    tls.push_back(std::move(*made));
  }
  const auto reload = [&]() -> net::TlsContext* {
    signalfd_siginfo info;
    while (::read(hang_up.get(), &info, sizeof info) > 0) {
    }
    if (tls.empty()) return nullptr;
    auto made = places.Read();
    if (!made.ok()) {
      std::fprintf(stderr, "tracefs-recv: certificates stay as they were: %s\n",
                   Printable(made.status().message()).c_str());
      return nullptr;
    }
    tls.push_back(std::move(*made));
    std::fprintf(stderr, "tracefs-recv: took the certificates anew\n");
    return tls.back().get();
  };
  const auto beat = [&service](size_t /*senders*/) { service.Beat(); };
  StoppableOutput out(STDOUT_FILENO, stop.get());
  auto keeper = MakeKeeper(options, out);
  if (!keeper.ok()) return keeper.status();
  auto receiver = Receiver::Create({.listen = options.listen,
                                    .handed = std::move(handed),
                                    .limits = options.limits,
                                    .tls = tls.empty() ? nullptr : tls[0].get(),
                                    .quiet = options.quiet,
                                    .on_tick = beat,
                                    .reload_fd = hang_up.get(),
                                    .on_reload = reload},
                                   **keeper);
  if (!receiver.ok()) return receiver.status();
  std::unique_ptr<Sandbox> sandbox;
  if (Status s = GiveUpRights(options, &sandbox); !s.ok()) return s;
  // Scripts wait for these lines.
  for (const std::string& address : (*receiver)->addresses()) {
    std::fprintf(stderr, "tracefs-recv: listening on %s\n", address.c_str());
  }
  service.TellReady("receives traces");
  const Status status = (*receiver)->Run(stop.get());
  const ServiceManager::Patience patience(service);
  // A reader that has seen enough (head), and a signal while it was slow.
  if (status.error() == EPIPE || status.error() == ECANCELED) {
    return Status::Ok();
  }
  return status;
}

// The libraries of brokers connect anew, with names and certificates: there is
// no shutting them in, and what is left is to be a user who may do little.
Status RunFrom(const RecvOptions& options) {
  GiveMemoryBack();
  ServiceManager service = ServiceManager::FromEnvironment();
  const UniqueFd stop = SignalsOf({SIGTERM, SIGINT, SIGHUP});
  if (!stop) return Status::System(errno, "signalfd");
  // A descriptor for each trace and one for its host's lock and folder.
  RaiseDescriptorLimit(4096);
  FleetOptions fleet = *options.fleet;
  if (!options.keys.empty()) {
    auto keys = std::make_shared<KeyRing>();
    if (Status s = AddKeyArguments(options.keys, "--key", keys.get());
        !s.ok()) {
      return s;
    }
    fleet.store.keys = std::move(keys);
  }
  if (!options.user.empty()) {
    const Result<Account> account = FindAccount(options.user);
    if (!account.ok()) return account.status().Prefixed("--user");
    if (Status s = Become(*account); !s.ok()) return s;
  }
  fleet.on_tick = [&service] { service.Beat(); };
  service.TellReady("takes traces from a broker");
  return RunFleet(std::move(fleet), stop.get());
}

}  // namespace
}  // namespace tracefs

int main(int argc, char** argv) {
  using namespace tracefs;  // NOLINT: a main
  return RunCommand({"tracefs-recv", &RecvHelp}, ParseRecvOptions(argc, argv),
                    [](const RecvOptions& options) {
                      if (options.fleet) {
                        return Finish("tracefs-recv", RunFrom(options));
                      }
                      return Finish("tracefs-recv", options.list.empty()
                                                        ? Run(options)
                                                        : List(options.list));
                    });
}
