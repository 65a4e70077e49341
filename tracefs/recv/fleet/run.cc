#include "tracefs/recv/fleet/run.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "tracefs/base/printable.h"
#include "tracefs/recv/fleet/places.h"

namespace tracefs {
namespace {

using Clock = FleetStore::Clock;
using std::chrono::milliseconds;

constexpr auto kFetchPatience = milliseconds(250);
constexpr size_t kFetchMost = 1024;
// Read in one go before it is stored.
constexpr uint64_t kRoundBytes = uint64_t{32} << 20;
constexpr auto kFirstPause = milliseconds(100);
constexpr auto kLongestPause = milliseconds(5000);
constexpr int kMaxLinesPerSecond = 20;
constexpr char kRefusedFolder[] = ".refused";
constexpr size_t kMaxRefusedFiles = 1000;

class FleetReceiver {
 public:
  FleetReceiver(FleetOptions options, UniqueFd root, int stop)
      : options_(std::move(options)),
        root_(std::move(root)),
        stop_(stop),
        checker_(options_.store.keys),
        store_(options_.store.format.empty()
                   ? MakeTraceStore(root_.get(), options_.store)
                   : MakeTableStore(root_.get(), options_.store)) {}

  Status Run() {
    auto pause = kFirstPause;
    bool said = false;
    while (!Stopped(milliseconds(0))) {
      auto consumer = MakeConsumer(options_.broker, options_.consumer);
      Status status = consumer.status();
      if (consumer.ok()) {
        std::fprintf(stderr, "tracefs-recv: taking from %s\n",
                     options_.broker.Name().c_str());
        said = false;
        pause = kFirstPause;
        Status local;
        status = Receive(**consumer, &local);
        if (!local.ok()) return local;
        if (status.ok()) break;
      }
      // What was not acknowledged comes again.
      store_->Forget();
      if (!std::exchange(said, true)) {
        std::fprintf(stderr, "tracefs-recv: %s: %s; trying again\n",
                     options_.broker.Name().c_str(),
                     Printable(status.message()).c_str());
      }
      if (Stopped(pause)) break;
      pause = std::min(2 * pause, kLongestPause);
    }
    SumUp();
    return Status::Ok();
  }

 private:
  bool Stopped(milliseconds patience) const {
    if (options_.on_tick) options_.on_tick();
    pollfd ready = {stop_, POLLIN, 0};
    return ::poll(&ready, 1, static_cast<int>(patience.count())) > 0;
  }

  // Until the end, or an error of the broker's; `local`: one of ours.
  Status Receive(Consumer& consumer, Status* local) {
    for (;;) {
      const bool last = Stopped(milliseconds(0));
      uint64_t bytes = 0;
      std::vector<uint64_t> done;
      while (!last && bytes < kRoundBytes) {
        auto fetched = consumer.Fetch(kFetchMost, kFetchPatience);
        if (!fetched.ok()) return fetched.status();
        if (fetched->empty()) break;
        for (const Delivery& delivery : *fetched) {
          bytes += delivery.body.size();
          Take(delivery, &done);
        }
        if (fetched->size() < kFetchMost / 4) break;
      }
      std::vector<FleetStore::Refused> refused;
      *local = store_->Commit(last, &done, &refused);
      for (const FleetStore::Refused& one : refused) {
        Refuse(one.block.host, one.why, one.block.preamble + one.block.frame);
        done.push_back(one.block.number);
      }
      if (IsPassing(*local)) {
        Say(local->message() + "; trying again");
        *local = Status::Ok();
        if (!last) Stopped(std::chrono::seconds(1));
      }
      if (!local->ok()) return Status::Ok();
      if (!done.empty()) {
        if (Status s = consumer.Acknowledge(done); !s.ok()) return s;
      }
      if (last) return Status::Ok();
    }
  }

  // A full disk is waited for: the broker keeps what comes.
  static bool IsPassing(const Status& status) {
    return status.error() == ENOSPC || status.error() == EDQUOT;
  }

  void Take(const Delivery& delivery, std::vector<uint64_t>* done) {
    const std::string& host = delivery.host;
    Result<FleetBlock> block =
        options_.hosts.empty() || host.empty() || options_.hosts.contains(host)
            ? checker_.Check(delivery)
            : Status::Invalid("the host is not known");
    if (block.ok()) {
      store_->Add(*std::move(block));
      return;
    }
    Refuse(host, block.status(), delivery.body);
    done->push_back(delivery.number);
  }

  // What is refused is not thrown away, as long as it is not too much.
  void Refuse(const std::string& host, const Status& why,
              std::string_view body) {
    ++refused_;
    Say("refused a block of host '" + host + "': " + why.message());
    if (host.empty() || refused_ > kMaxRefusedFiles) return;
    const Result<UniqueFd> folder =
        OpenOrMakeFolder(root_.get(), kRefusedFolder);
    if (!folder.ok()) return;
    const auto now =
        std::chrono::system_clock::now().time_since_epoch().count();
    static_cast<void>(
        WriteFileWhole(folder->get(), host + '-' + std::to_string(now), body));
  }

  void Say(const std::string& what) {
    const auto now = Clock::now();
    if (now - second_ >= std::chrono::seconds(1)) {
      second_ = now;
      lines_ = 0;
    }
    if (options_.quiet || ++lines_ > kMaxLinesPerSecond) return;
    std::fprintf(stderr, "tracefs-recv: %s\n", Printable(what).c_str());
  }

  void SumUp() const {
    if (options_.quiet) return;
    const FleetCounts& counts = store_->counts();
    std::fprintf(stderr,
                 "tracefs-recv: stored %llu blocks; %llu doubled, %llu late, "
                 "%llu never came, %llu refused\n",
                 static_cast<unsigned long long>(counts.blocks),
                 static_cast<unsigned long long>(counts.doubled),
                 static_cast<unsigned long long>(counts.late),
                 static_cast<unsigned long long>(counts.gaps),
                 static_cast<unsigned long long>(refused_));
  }

  const FleetOptions options_;
  const UniqueFd root_;
  const int stop_;
  BlockChecker checker_;
  const std::unique_ptr<FleetStore> store_;
  uint64_t refused_ = 0;
  Clock::time_point second_{};
  int lines_ = 0;
};

}  // namespace

Status RunFleet(FleetOptions options, int stop) {
  if (Status s = CheckBrokerBuilt(options.broker.kind); !s.ok()) return s;
  UniqueFd root(::open(options.store.directory.c_str(),
                       O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root) {
    return Status::System(errno,
                          "directory '" + options.store.directory + "'" +
                              (errno == ENOENT ? " (make it first)" : ""));
  }
  return FleetReceiver(std::move(options), std::move(root), stop).Run();
}

}  // namespace tracefs
