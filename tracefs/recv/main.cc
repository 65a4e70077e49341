// tracefs-recv: receives traces. See receiver.h; docs/man/tracefs-recv.1.
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <initializer_list>
#include <memory>
#include <optional>

#include "tracefs/base/clock.h"
#include "tracefs/base/date_text.h"
#include "tracefs/base/descriptor_limit.h"
#include "tracefs/base/detached_child.h"
#include "tracefs/base/file_io.h"
#include "tracefs/base/helper_link.h"
#include "tracefs/base/log_socket.h"
#include "tracefs/base/notice.h"
#include "tracefs/base/printable.h"
#include "tracefs/command/front.h"
#include "tracefs/control/metrics_server.h"
#include "tracefs/crypto/cipher.h"
#include "tracefs/crypto/key_source.h"
#include "tracefs/daemon/account.h"
#include "tracefs/daemon/log.h"
#include "tracefs/daemon/log_connector.h"
#include "tracefs/daemon/sandbox.h"
#include "tracefs/daemon/service_manager.h"
#include "tracefs/recv/certificate_places.h"
#include "tracefs/recv/current_keys.h"
#include "tracefs/recv/file_keeper.h"
#include "tracefs/recv/fleet/fleet_metrics.h"
#include "tracefs/recv/fleet/places.h"
#include "tracefs/recv/key_places.h"
#include "tracefs/recv/live_printer.h"
#include "tracefs/recv/options.h"
#include "tracefs/recv/receiver.h"
#include "tracefs/recv/receiver_counts.h"
#include "tracefs/recv/receiver_metrics.h"
#include "tracefs/recv/sender_shares.h"
#include "tracefs/text/output_buffer.h"

namespace tracefs {
namespace {

constexpr std::string_view kName = "tracefs-recv";

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
  return UniqueFd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

Result<std::unique_ptr<Keeper>> MakeKeeper(
    const RecvOptions& options, std::shared_ptr<const CurrentKeys> keys,
    ReceiverCounts& counts, OutputBuffer& out) {
  if (!options.out.empty()) {
    return MakeFileKeeper({.directory = options.out,
                           .max_trace_bytes = options.max_trace_bytes,
                           .max_traces = options.max_traces,
                           .retention = options.retention,
                           .counts = &counts});
  }
  return MakeLivePrinter({.format = options.format,
                          .keys = std::move(keys),
                          .max_block_bytes = options.limits.max_block_bytes,
                          .max_memory = options.max_memory},
                         out);
}

// Certificates and keys, which SIGHUP has read again.
class Secrets {
 public:
  // Opens the places they lie at, and reads them. Before a sandbox.
  static Result<std::unique_ptr<Secrets>> Open(const RecvOptions& options) {
    auto keys = KeyPlaces::Open(options.keys);
    if (!keys.ok()) return keys.status();
    std::unique_ptr<Secrets> all(new Secrets(options, *std::move(keys)));
    if (Status s = all->Read(); !s.ok()) return s;
    return all;
  }

  // What is there now, all of it or nothing.
  Status Read() {
    auto keys = key_places_.Read();
    if (!keys.ok()) return keys.status();
    if (has_tls_) {
      auto made = certificate_places_.Read();
      if (!made.ok()) return made.status();
      contexts_.push_back(std::move(*made));
    }
    keys_->Set(*std::move(keys));
    return Status::Ok();
  }

  // For new connections; null without certificates.
  net::TlsContext* tls() const {
    return contexts_.empty() ? nullptr : contexts_.back().get();
  }
  std::shared_ptr<const CurrentKeys> keys() const { return keys_; }

 private:
  Secrets(const RecvOptions& options, KeyPlaces keys)
      : has_tls_(!options.tls.ca.empty()),
        certificate_places_(options.tls),
        key_places_(std::move(keys)),
        keys_(std::make_shared<CurrentKeys>(std::make_shared<KeyRing>())) {}

  const bool has_tls_;
  const CertificatePlaces certificate_places_;
  const KeyPlaces key_places_;
  // All but the last are those of old connections.
  std::vector<std::unique_ptr<net::TlsContext>> contexts_;
  const std::shared_ptr<CurrentKeys> keys_;
};

// A log's socket is found again where a sandbox keeps us from looking for it.
bool NeedsConnector(const RecvOptions& options, const LogPlace& log) {
  return options.sandbox && !log.path.empty();
}

// From here on the process has what is open and nothing else: what comes next
// is read from the network.
Status GiveUpRights(const RecvOptions& options, const LogPlace& log,
                    std::unique_ptr<LogConnector>* connector,
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
  if (NeedsConnector(options, log)) {
    auto started = LogConnector::Start(log.path, who);
    if (!started.ok()) return started.status();
    *connector = *std::move(started);
  }
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

// Adds the traces of a folder of `parent`; one that cannot be read is left out.
void AddFolder(int parent, const std::string& name, const std::string& above,
               std::vector<KeptTrace>* all) {
  const UniqueFd folder(::openat(
      parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder) return;
  const std::string here = above + name + '/';
  if (Result<std::vector<KeptTrace>> traces = ListTraces(folder.get());
      traces.ok()) {
    for (KeptTrace& trace : *traces) {
      trace.name.insert(0, here);
      all->push_back(std::move(trace));
    }
  }
  if (!above.empty()) return;
  for (const std::string& day : NamesIn(folder.get(), kDayPrefix)) {
    AddFolder(folder.get(), day, here, all);
  }
}

// --list: for people and scripts, tabs between.
Status List(const std::string& path) {
  const UniqueFd directory(
      ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return Status::System(errno, "directory '" + path + "'");
  Result<std::vector<KeptTrace>> all = ListTraces(directory.get());
  if (!all.ok()) return all.status();
  // Those of --from lie in folders of hosts and days.
  for (const std::string& host : NamesIn(directory.get(), kHostPrefix)) {
    AddFolder(directory.get(), host, "", &*all);
  }
  std::ranges::stable_sort(*all, {}, &KeptTrace::written_s);
  std::string text = "#trace\tsender\tbytes\tlast block\tbytes on disk\n";
  for (const KeptTrace& trace : *all) {
    const std::string sender = SenderOf(trace.name);
    text += Printable(trace.name) + '\t' +
            (sender.empty() ? "-" : Printable(sender)) + '\t' +
            std::to_string(trace.size) + '\t' +
            UtcText(trace.written_s, "%Y-%m-%dT%H:%M:%SZ") + '\t' +
            std::to_string(trace.bytes) + '\n';
  }
  return WriteAll(STDOUT_FILENO, AsBytes(text), "standard output");
}

// --log: auto is standard error, which in a service is the journal's.
LogPlace LogOf(const RecvOptions& options) {
  LogPlace place = options.log;
  if (place.kind == LogPlace::Kind::kAuto) place.kind = LogPlace::Kind::kStderr;
  return place;
}

std::string PlaceText(const RecvOptions& options) {
  return options.out.empty() ? " and prints them as " + options.format
                             : " for '" + options.out + "'";
}

std::string TotalsText(const ReceiverCounts& counts) {
  uint64_t refused = 0;
  for (const ReceiverCounts::Count& one : counts.refused) refused += one;
  return std::to_string(counts.connections) + " connections, " +
         std::to_string(counts.welcomed) + " welcomed, " +
         std::to_string(refused) + " refused, " +
         std::to_string(counts.blocks) + " blocks, " +
         std::to_string(counts.bytes) + " bytes, " +
         std::to_string(counts.removed) + " traces removed";
}

// Null: not wanted. Opened early: a port cannot be opened later.
Result<std::unique_ptr<MetricsServer>> OpenMetrics(const RecvOptions& options) {
  if (options.metrics.empty()) return std::unique_ptr<MetricsServer>();
  return MetricsServer::Open(options.metrics, options.metrics_group);
}

// None without --systemd.
Result<std::vector<HandedSocket>> HandedTo(const RecvOptions& options) {
  if (!options.systemd) return std::vector<HandedSocket>();
  Result<std::vector<HandedSocket>> taken = TakeHandedSockets();
  if (!taken.ok()) return taken.status();
  if (taken->empty() && options.listen.empty()) {
    return Status::Invalid(
        "--systemd: no socket was handed over, and there is no --listen");
  }
  for (const HandedSocket& socket : *taken) {
    if (socket.address.transport == net::Transport::kTls &&
        options.tls.ca.empty()) {
      return Status::Invalid(
          "a socket for TLS was handed over: --ca, --cert and --tls-key are "
          "needed");
    }
  }
  return taken;
}

// After a hang-up. Null: they stay what they were.
net::TlsContext* ReadAgain(int hang_up, Secrets& secrets,
                           ReceiverCounts& counts) {
  signalfd_siginfo info;
  while (::read(hang_up, &info, sizeof info) > 0) {
  }
  if (Status s = secrets.Read(); !s.ok()) {
    ++counts.failed_reloads;
    Notify(NoticeId::kReloadFailed,
           "certificates and keys stay as they were: " + s.message());
    return nullptr;
  }
  ++counts.reloads;
  Notify(NoticeId::kReloaded, "reloaded certificates and keys");
  return secrets.tls();
}

Status Run(const RecvOptions& options) {
  GiveMemoryBack();
  ServiceManager service = ServiceManager::FromEnvironment();
  Result<std::vector<HandedSocket>> handed = HandedTo(options);
  if (!handed.ok()) return handed.status();
  // Without certificates and keys there is nothing to reload, and a hang-up
  // comes from a terminal.
  const bool reloads =
      options.systemd || !options.tls.ca.empty() || !options.keys.empty();
  const UniqueFd stop = reloads ? SignalsOf({SIGTERM, SIGINT})
                                : SignalsOf({SIGTERM, SIGINT, SIGHUP});
  const UniqueFd hang_up = reloads ? SignalsOf({SIGHUP}) : UniqueFd();
  if (!stop || (reloads && !hang_up)) {
    return Status::System(errno, "signalfd");
  }
  // One for each client, and one for its file.
  RaiseDescriptorLimit(
      2 * (options.limits.max_clients + options.limits.handshakes()) + 64);
  auto opened = Secrets::Open(options);
  if (!opened.ok()) return opened.status();
  Secrets& secrets = **opened;
  CloseInheritedFiles();
  ReceiverCounts counts;
  const auto beat = [&service](size_t /*senders*/) {
    service.Beat();
    static_cast<void>(LookAtHelpers());
  };
  StoppableOutput out(STDOUT_FILENO, stop.get());
  auto keeper = MakeKeeper(options, secrets.keys(), counts, out);
  if (!keeper.ok()) return keeper.status();
  auto receiver = Receiver::Create(
      {.listen = options.listen,
       .handed = *std::move(handed),
       .limits = options.limits,
       .tls = secrets.tls(),
       .quiet = options.quiet,
       .counts = &counts,
       .on_tick = beat,
       .reload_fd = hang_up.get(),
       .on_reload = [&] { return ReadAgain(hang_up.get(), secrets, counts); }},
      **keeper);
  if (!receiver.ok()) return receiver.status();
  const auto metrics = OpenMetrics(options);
  if (!metrics.ok()) return metrics.status();
  UniqueFd directory;  // for them
  if (*metrics != nullptr && !options.out.empty()) {
    directory.Reset(
        ::open(options.out.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!directory) return Status::System(errno, "'" + options.out + "'");
  }
  std::unique_ptr<LogConnector> connector;  // outlives the log
  const auto log = Log::Open(LogOf(options), /*foreground=*/true, kName);
  if (!log.ok()) return log.status();
  std::unique_ptr<Sandbox> sandbox;
  if (Status s = GiveUpRights(options, (*log)->place(), &connector, &sandbox);
      !s.ok()) {
    return s;
  }
  const Log::Reconnect reconnect =
      connector == nullptr ? &ConnectLog
                           : Log::Reconnect([&connector](const std::string&) {
                               return connector->Connect();
                             });
  if (Status s = (*log)->Start(reconnect); !s.ok()) return s;
  (*log)->GoOn();
  if (*metrics != nullptr) {
    if (Status s = (*metrics)->Start(
            [&] { return ReceiverMetrics(counts, directory.get()); },
            [&] { return ReceiverHealth(counts, MonotonicNs()); });
        !s.ok()) {
      return s;
    }
    std::fprintf(stderr, "tracefs-recv: metrics at %s\n",
                 (*metrics)->address().c_str());
  }
  // Scripts wait for these lines.
  for (const std::string& address : (*receiver)->addresses()) {
    std::fprintf(stderr, "tracefs-recv: listening on %s\n", address.c_str());
  }
  Notify(NoticeId::kReceiving, "receives traces" + PlaceText(options));
  service.TellReady("receives traces");
  Status status = (*receiver)->Run(stop.get());
  const ServiceManager::Patience patience(service);
  if (*metrics != nullptr) (*metrics)->Stop();
  // A reader that has seen enough (head), and a signal while it was slow.
  if (status.error() == EPIPE || status.error() == ECANCELED) {
    status = Status::Ok();
  }
  Notify(NoticeId::kEnded, "has ended: " + TotalsText(counts));
  if (!status.ok() && (*log)->place().kind != LogPlace::Kind::kStderr) {
    Notify(NoticeId::kFailed, status.message());
  }
  return status;
}

// The libraries of brokers reconnect, with names and certificates: they cannot
// be sandboxed, and the remaining protection is a user with few rights.
Status RunFrom(const RecvOptions& options) {
  GiveMemoryBack();
  ServiceManager service = ServiceManager::FromEnvironment();
  const UniqueFd stop = SignalsOf({SIGTERM, SIGINT, SIGHUP});
  if (!stop) return Status::System(errno, "signalfd");
  RaiseDescriptorLimit(kFleetDescriptors);
  FleetOptions fleet = *options.fleet;
  if (!options.keys.empty()) {
    auto keys = std::make_shared<KeyRing>();
    if (Status s = AddKeyArguments(options.keys, "--key", keys.get());
        !s.ok()) {
      return s;
    }
    fleet.store.keys = std::move(keys);
  }
  auto metrics = OpenMetrics(options);
  if (!metrics.ok()) return metrics.status();
  const auto log = Log::Open(LogOf(options), /*foreground=*/true, kName);
  if (!log.ok()) return log.status();
  if (!options.user.empty()) {
    const Result<Account> account = FindAccount(options.user);
    if (!account.ok()) return account.status().Prefixed("--user");
    if (Status s = Become(*account); !s.ok()) return s;
  }
  const UniqueFd directory(
      ::open(fleet.store.directory.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (Status s = (*log)->Start(&ConnectLog); !s.ok()) return s;
  (*log)->GoOn();
  FleetState state;
  fleet.state = &state;
  fleet.on_tick = [&service] { service.Beat(); };
  if (*metrics != nullptr) {
    if (Status s = (*metrics)->Start(
            [&] { return FleetMetrics(state, directory.get()); },
            [&] { return FleetHealth(state, MonotonicNs()); });
        !s.ok()) {
      return s;
    }
    std::fprintf(stderr, "tracefs-recv: metrics at %s\n",
                 (*metrics)->address().c_str());
  }
  service.TellReady("takes traces from a broker");
  const Status status = RunFleet(std::move(fleet), stop.get());
  const ServiceManager::Patience patience(service);
  if (*metrics != nullptr) (*metrics)->Stop();
  if (!status.ok() && (*log)->place().kind != LogPlace::Kind::kStderr) {
    Notify(NoticeId::kFailed, status.message());
  }
  return status;
}

}  // namespace
}  // namespace tracefs

int main(int argc, char** argv) {
  using namespace tracefs;  // NOLINT: a main
  return RunCommand({kName, &RecvHelp}, ParseRecvOptions(argc, argv),
                    [](const RecvOptions& options) {
                      if (options.fleet) {
                        return Finish(kName, RunFrom(options));
                      }
                      return Finish(kName, options.list.empty()
                                               ? Run(options)
                                               : List(options.list));
                    });
}
