#include "tracefs/recv/fleet/run.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "tracefs/base/clock.h"
#include "tracefs/base/notice.h"
#include "tracefs/recv/fleet/places.h"

namespace tracefs {
namespace {

using std::chrono::milliseconds;

constexpr auto kFetchPatience = milliseconds(250);
constexpr size_t kFetchMost = 1024;
// Read in one go before it is stored.
constexpr uint64_t kRoundBytes = uint64_t{32} << 20;
constexpr auto kFirstPause = milliseconds(100);
constexpr auto kLongestPause = milliseconds(5000);
constexpr char kRefusedFolder[] = ".refused";
constexpr size_t kMaxRefusedFiles = 1000;
constexpr size_t kMaxLeftHosts = 10'000;

class FleetReceiver {
 public:
  FleetReceiver(FleetOptions options, UniqueFd root, int stop)
      : options_(std::move(options)),
        root_(std::move(root)),
        stop_(stop),
        checker_(options_.store.keys, !options_.store.format.empty()),
        store_(options_.store.format.empty()
                   ? MakeTraceStore(root_.get(), options_.store)
                   : MakeTableStore(root_.get(), options_.store)),
        state_(options_.state != nullptr ? *options_.state : none_),
        housekeeping_(root_.get(), options_.housekeeping, state_) {}

  Status Run() {
    if (Status s = housekeeping_.Start(); !s.ok()) return s;
    auto pause = kFirstPause;
    bool said = false;
    while (!Stopped(milliseconds(0))) {
      auto consumer = MakeConsumer(options_.broker, options_.consumer);
      Status status = consumer.status();
      if (consumer.ok()) {
        std::fprintf(stderr, "tracefs-recv: taking from %s\n",
                     options_.broker.Name().c_str());
        Notify(NoticeId::kReceiving, "takes traces from " +
                                         options_.broker.Name() + " for '" +
                                         options_.store.directory + "'");
        said = false;
        pause = kFirstPause;
        state_.connected = true;
        Status local;
        status = Receive(**consumer, &local);
        state_.connected = false;
        if (!local.ok()) return local;
        if (status.ok()) break;
      }
      // What was not acknowledged comes again.
      store_->Forget();
      if (!std::exchange(said, true)) {
        ++state_.losses;
        Notify(NoticeId::kBrokerLost, options_.broker.Name() + ": " +
                                          status.message() + "; trying again");
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
    state_.last_turn_ns = MonotonicNs();
    pollfd ready = {stop_, POLLIN, 0};
    return ::poll(&ready, 1, static_cast<int>(patience.count())) > 0;
  }

  // Until the end, or an error of the broker's; `local`: one of ours.
  Status Receive(Consumer& consumer, Status* local) {
    for (;;) {
      const bool last = Stopped(milliseconds(0));
      uint64_t bytes = 0;
      std::vector<uint64_t> done;
      // While nothing can be stored, no more is held than that.
      while (!last && bytes < kRoundBytes && !HoldsTooMuch()) {
        auto fetched = consumer.Fetch(kFetchMost, kFetchPatience);
        if (!fetched.ok()) return fetched.status();
        if (fetched->empty()) break;
        for (const Delivery& delivery : *fetched) {
          bytes += delivery.body.size();
          state_.bytes += delivery.body.size();
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
      TellState(*local);
      if (IsPassing(*local)) {
        *local = Status::Ok();
        if (!last) Stopped(std::chrono::seconds(1));
      }
      if (!local->ok()) return Status::Ok();
      if (!done.empty()) {
        if (Status s = consumer.Acknowledge(done); !s.ok()) return s;
      }
      if (last) return Status::Ok();
      // Fetching waits; where nothing may be fetched, this does.
      if (done.empty() && bytes == 0 && HoldsTooMuch()) {
        Stopped(kFetchPatience);
      }
    }
  }

  bool HoldsTooMuch() const {
    return store_->held_bytes() > options_.store.max_held_bytes;
  }

  // A full disk is waited for: the broker keeps what comes.
  static bool IsPassing(const Status& status) {
    return status.error() == ENOSPC || status.error() == EDQUOT;
  }

  // For metrics; and in the log what has changed.
  void TellState(const Status& stored) {
    const FleetCounts& counts = store_->counts();
    state_.blocks = counts.blocks;
    state_.doubled = counts.doubled;
    state_.late = counts.late;
    state_.gaps = counts.gaps;
    state_.files = counts.files;
    const int before = state_.disk_error;
    if (IsPassing(stored)) {
      ++state_.disk_failures;
      state_.disk_error = stored.error();
      housekeeping_.Hurry();
      if (before == 0) {
        Notify(NoticeId::kDiskFull, stored.message() + "; trying again");
      }
    } else if (stored.ok() && before != 0) {
      state_.disk_error = 0;
      Notify(NoticeId::kOutputBack,
             "'" + options_.store.directory + "' takes traces again");
    }
  }

  void Take(const Delivery& delivery, std::vector<uint64_t>* done) {
    const std::string& host = delivery.host;
    Result<FleetBlock> block =
        options_.hosts.empty() || host.empty() || options_.hosts.contains(host)
            ? checker_.Check(delivery)
            : Status::Invalid("the host is not known");
    if (block.ok()) {
      if (!block->key_missing.empty()) {
        Leave(*block);
      } else {
        store_->Add(*std::move(block));
      }
      return;
    }
    Refuse(host, block.status(), delivery.body);
    done->push_back(delivery.number);
  }

  // It is not acknowledged: a receiver with the key gets it.
  void Leave(const FleetBlock& block) {
    ++state_.left;
    if (left_of_.size() >= kMaxLeftHosts ||
        !left_of_.insert(block.host).second) {
      return;
    }
    // Of a kind of its own: forged blocks can fill the room of the others.
    Notify(NoticeId::kKeyMissing,
           "blocks of host '" + block.host +
               "' stay with the broker: " + block.key_missing);
  }

  // Refused blocks are kept, up to a limit.
  void Refuse(const std::string& host, const Status& why,
              std::string_view body) {
    ++state_.refused;
    if (!options_.quiet) {
      Notify(NoticeId::kSenderRefused,
             "refused a block of host '" + host + "': " + why.message());
    }
    if (host.empty() || state_.refused > kMaxRefusedFiles) return;
    const Result<UniqueFd> folder =
        OpenOrMakeFolder(root_.get(), kRefusedFolder);
    if (!folder.ok()) return;
    const auto now =
        std::chrono::system_clock::now().time_since_epoch().count();
    static_cast<void>(
        WriteFileWhole(folder->get(), host + '-' + std::to_string(now), body));
  }

  void SumUp() const {
    const FleetCounts& counts = store_->counts();
    const std::string text =
        "stored " + std::to_string(counts.blocks) + " blocks; " +
        std::to_string(counts.doubled) + " doubled, " +
        std::to_string(counts.late) + " late, " + std::to_string(counts.gaps) +
        " never came, " + std::to_string(state_.refused) + " refused, " +
        std::to_string(state_.left) + " left for lack of a key";
    if (!options_.quiet) {
      std::fprintf(stderr, "tracefs-recv: %s\n", text.c_str());
    }
    Notify(NoticeId::kEnded, "has ended: " + text);
  }

  const FleetOptions options_;
  const UniqueFd root_;
  const int stop_;
  BlockChecker checker_;
  const std::unique_ptr<FleetStore> store_;
  FleetState none_;
  FleetState& state_;
  Housekeeping housekeeping_;
  std::set<std::string> left_of_;  // hosts that were told of
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
