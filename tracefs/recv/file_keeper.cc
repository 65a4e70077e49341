#include "tracefs/recv/file_keeper.h"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>

#include "tracefs/base/durable.h"
#include "tracefs/base/enclosed_folder.h"
#include "tracefs/base/event_fd.h"
#include "tracefs/base/folder.h"
#include "tracefs/base/notice.h"
#include "tracefs/base/thread.h"
#include "tracefs/recv/kept_places.h"
#include "tracefs/recv/stored_trace.h"

namespace tracefs {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// Between two rounds of fdatasync: what comes meanwhile shares the next one.
constexpr auto kSyncInterval = milliseconds(20);
// For a file that is looked through, before another one has its turn.
constexpr auto kKeeperTurn = milliseconds(50);
// A trace is opened so often at once, and then once in each interval: a sender
// that does nothing but come back costs others nothing.
constexpr int kReopenBurst = 8;
constexpr auto kReopenInterval = milliseconds(250);
// Files whose ends are remembered, and traces whose openings are counted. Who
// is forgotten is looked through, or let in, once more.
constexpr size_t kMaxKeptEnds = 16384;

class FileKeeper final : public Keeper {
 public:
  FileKeeper(FileKeeperOptions options, UniqueFd directory,
             const std::vector<std::string>& names)
      : options_(std::move(options)),
        directory_(std::move(directory)),
        counts_(options_.counts != nullptr ? *options_.counts : own_counts_),
        places_(options_.max_traces, options_.retention.max_bytes),
        retention_(
            directory_.get(), options_.retention,
            [this](const KeptTrace& trace) { TellRemoved(trace); },
            [this](const auto& all) { places_.Look(all); }) {
    for (const std::string& name : names) places_.AddFile(name);
    counts_.traces = names.size();
  }
  FileKeeper(const FileKeeper&) = delete;
  FileKeeper& operator=(const FileKeeper&) = delete;
  ~FileKeeper() override {
    {
      std::lock_guard lock(mu_);
      ending_ = true;
    }
    dirt_.notify_one();
    work_.notify_one();
    if (sync_thread_.joinable()) sync_thread_.join();
    if (open_thread_.joinable()) open_thread_.join();
  }

  Status Start() override {
    if (::faccessat(directory_.get(), ".", W_OK, AT_EACCESS) != 0) {
      const int error = errno;
      const std::string who = "user " + std::to_string(::geteuid());
      return Status::System(
          error, "directory '" + options_.directory + "' for " + who +
                     " (give it to them, or choose another one with --user)");
    }
    // Names of files that the last receiver made and was killed over: what is
    // added to them is acknowledged.
    Status s =
        SyncFolder(directory_.get(), "directory '" + options_.directory + "'");
    if (s.ok()) s = retention_.Start();
    if (s.ok()) {
      s = StartThread(
          "tracefs-disk", [this] { SyncFiles(); }, &sync_thread_);
    }
    if (s.ok()) {
      s = StartThread(
          "tracefs-open", [this] { OpenFiles(); }, &open_thread_);
    }
    return s;
  }

  bool live() const override { return false; }

  void Open(uint64_t client, const std::string& name,
            const net::Hello& hello) override {
    if (places_.IsOver(SenderOf(name + ".trace"))) {
      // Its oldest traces go first, of which this may be one.
      retention_.Hurry();
      std::lock_guard lock(mu_);
      return Put({.client = client, .status = OverItsShare(ENOBUFS)});
    }
    retention_.Hold(name + ".trace");
    held_[client] = name + ".trace";
    auto trace = std::make_shared<StoredTrace>(
        directory_.get(), name + ".trace", hello.preamble, hello.serial);
    {
      std::lock_guard lock(mu_);
      opening_.push_back({client, std::move(trace), /*begun=*/false,
                          TakeReopening(name, Clock::now())});
    }
    work_.notify_one();
  }

  Status Write(uint64_t client, ByteSpan bytes, size_t whole,
               uint64_t next) override {
    const std::shared_ptr<StoredTrace>& trace = open_.at(client);
    const std::string sender = SenderOf(trace->name());
    if (!trace->exists() && !places_.MayAddFile(sender)) {
      return Status::Invalid(
          "there are " + std::to_string(counts_.traces) +
          " traces already, the limit, and this sender has its share of them; "
          "move some away or raise --max-traces");
    }
    if (places_.IsOver(sender)) {
      retention_.Hurry();
      return OverItsShare(ENOSPC);
    }
    if (options_.max_trace_bytes != 0 &&
        trace->size() + bytes.size() > options_.max_trace_bytes) {
      return Status::Invalid("the trace is longer than --max-trace allows");
    }
    const bool existed = trace->exists();
    const Status status = trace->Append(bytes, whole, next);
    if (!existed && trace->exists()) AddFile(trace->name());
    if (places_.AddBytes(sender, bytes.size())) retention_.Hurry();
    TellDisk(status);
    if (!status.ok()) return status;
    if (whole == 0) return Status::Ok();
    {
      std::lock_guard lock(mu_);
      dirty_[client] = {trace, next};
    }
    dirt_.notify_one();
    return Status::Ok();
  }

  void Close(uint64_t client) override {
    if (const auto held = held_.find(client); held != held_.end()) {
      retention_.Release(held->second);
      held_.erase(held);
    }
    std::shared_ptr<StoredTrace> closed;
    if (const auto found = open_.find(client); found != open_.end()) {
      const bool existed = found->second->exists();
      found->second->Abandon();
      // Nothing whole ever came.
      if (existed && found->second->next() == 0) {
        RemoveFile(found->second->name());
      }
      closed = std::move(found->second);
      open_.erase(found);
    }
    std::lock_guard lock(mu_);
    if (closed != nullptr) Remember(*closed);
    const auto of_client = [&](const auto& job) {
      return job.client == client;
    };
    for (const Opening& job : opening_) {
      if (of_client(job) && job.begun) Remember(*job.trace);
    }
    std::erase_if(opening_, of_client);
    std::erase_if(opened_,
                  [&](const auto& one) { return one.first == client; });
    // OpenFiles sees that when its turn is over.
    if (looking_at_ == client) looking_at_ = 0;
    std::erase_if(events_,
                  [&](const Event& event) { return event.client == client; });
  }

  std::vector<Event> TakeEvents() override {
    event_.Clear();
    std::lock_guard lock(mu_);
    for (auto& [client, trace] : opened_) open_[client] = std::move(trace);
    opened_.clear();
    return std::exchange(events_, {});
  }
  int event_fd() const override { return event_.get(); }

  Status Finish() override {
    std::unique_lock lock(mu_);
    dirt_.notify_one();
    idle_.wait(lock, [&] {
      return (dirty_.empty() && !syncing_) || !sync_thread_.joinable();
    });
    return Status::Ok();
  }

 private:
  struct Dirty {
    std::shared_ptr<StoredTrace> trace;
    uint64_t next = 0;
  };

  // Someone who waits for a file to be looked through.
  struct Opening {
    uint64_t client = 0;
    std::shared_ptr<StoredTrace> trace;
    bool begun = false;
    Clock::time_point not_before;
  };

  static Status OverItsShare(int error) {
    return Status::SystemSaid(
        error,
        "this sender has more than its share of --keep-size, and its oldest "
        "traces go first");
  }

  void AddFile(const std::string& name) {
    places_.AddFile(name);
    ++counts_.traces;
  }
  void RemoveFile(const std::string& name) {
    places_.RemoveFile(name);
    --counts_.traces;
  }

  // On the thread of retention_.
  void TellRemoved(const KeptTrace& trace) {
    RemoveFile(trace.name);
    ++counts_.removed;
    counts_.removed_bytes += trace.bytes;
    Notify(NoticeId::kTraceRemoved,
           "removed '" + trace.name + "' (" + std::to_string(trace.bytes) +
               " bytes): older than is to be kept, or there was no room for "
               "it");
  }

  // What became of a write or of making it durable. Any thread.
  void TellDisk(const Status& status) {
    // What has another code was not the disk's doing.
    if (!status.ok() && status.error() == 0) return;
    const int error = status.ok() ? 0 : status.error();
    if (error == ENOSPC || error == EDQUOT) {
      retention_.Hurry();  // the sender comes again
    }
    if (error != 0) ++counts_.disk_failures;
    if (counts_.disk_error.exchange(error) == error) return;
    const std::string what = "directory '" + options_.directory + "'";
    if (error == 0) {
      Notify(NoticeId::kOutputBack, what + " takes traces again");
    } else {
      Notify(error == ENOSPC || error == EDQUOT ? NoticeId::kDiskFull
                                                : NoticeId::kOutputFailed,
             what + ": " + status.message() +
                 "; senders keep their traces until it takes them");
    }
  }

  // --- With the lock held.

  // When the trace may be opened. However often that is asked for, it is not
  // later than an interval from now.
  Clock::time_point TakeReopening(const std::string& name,
                                  Clock::time_point now) {
    if (reopenings_.size() >= kMaxKeptEnds) {
      std::erase_if(reopenings_,
                    [&](const auto& one) { return one.second <= now; });
      if (reopenings_.size() >= kMaxKeptEnds) reopenings_.clear();
    }
    // Each opening fills the burst by one, and each interval empties it by one.
    Clock::time_point& full = reopenings_[name];
    constexpr auto kBurst = kReopenBurst * kReopenInterval;
    full = std::clamp(full, now, now + kBurst) + kReopenInterval;
    return std::max(now, full - kBurst);
  }

  void Remember(const StoredTrace& trace) {
    if (!trace.exists()) return;
    if (trace.failed()) {
      known_.erase(trace.name());
      return;
    }
    if (known_.size() >= kMaxKeptEnds) known_.erase(known_.begin());
    known_[trace.name()] = trace.Known();
  }

  // The one whose turn it is; end() if there is none yet.
  std::deque<Opening>::iterator NextOpening(Clock::time_point now) {
    return std::find_if(
        opening_.begin(), opening_.end(),
        [&](const Opening& job) { return job.not_before <= now; });
  }

  // Waits for something to do; false at the end.
  bool AwaitOpening(std::unique_lock<std::mutex>& lock) {
    while (!ending_) {
      if (NextOpening(Clock::now()) != opening_.end()) return true;
      if (opening_.empty()) {
        work_.wait(lock);
        continue;
      }
      const auto first =
          std::min_element(opening_.begin(), opening_.end(),
                           [](const Opening& a, const Opening& b) {
                             return a.not_before < b.not_before;
                           });
      work_.wait_until(lock, Clock::time_point(first->not_before));
    }
    return false;
  }

  // --- The thread that looks files through, in turns.

  void OpenFiles() {
    std::unique_lock lock(mu_);
    while (AwaitOpening(lock)) {
      const auto next = NextOpening(Clock::now());
      Opening job = std::move(*next);
      opening_.erase(next);
      looking_at_ = job.client;
      std::optional<KnownEnd> known;
      if (const auto found = known_.find(job.trace->name());
          !job.begun && found != known_.end()) {
        known = found->second;
      }
      lock.unlock();
      Status status = LookOn(job, known ? &*known : nullptr);
      lock.lock();
      const bool gone = std::exchange(looking_at_, 0) != job.client;
      if (!status.ok()) {
        known_.erase(job.trace->name());
      } else if (gone || job.trace->scanned()) {
        Remember(*job.trace);
      }
      if (gone) continue;
      if (status.ok() && !job.trace->scanned()) {
        opening_.push_back(std::move(job));
        continue;
      }
      Put({.client = job.client,
           .opened = true,
           .next = job.trace->next(),
           .status = status});
      if (status.ok()) opened_.emplace_back(job.client, std::move(job.trace));
    }
  }

  // One turn, without the lock.
  static Status LookOn(Opening& job, const KnownEnd* known) {
    if (!std::exchange(job.begun, true)) {
      if (Status s = job.trace->Begin(known); !s.ok()) return s;
    }
    if (!job.trace->scanned()) {
      if (Status s = job.trace->ScanUntil(Clock::now() + kKeeperTurn);
          !s.ok()) {
        return s;
      }
    }
    // What the last receiver wrote may not have reached the disk.
    return job.trace->scanned() ? job.trace->Sync() : Status::Ok();
  }

  // --- The thread that makes durable. It waits for no file to be opened.

  void SyncFiles() {
    auto last_round = Clock::now() - kSyncInterval;
    std::unique_lock lock(mu_);
    for (;;) {
      dirt_.wait(lock, [&] { return ending_ || !dirty_.empty(); });
      if (dirty_.empty()) return;  // ending
      // Not waited for when all is to end.
      dirt_.wait_until(lock, last_round + kSyncInterval,
                       [&] { return ending_; });
      last_round = Clock::now();
      SyncAll(lock);
    }
  }

  void SyncAll(std::unique_lock<std::mutex>& lock) {
    syncing_ = true;
    const std::map<uint64_t, Dirty> dirty = std::exchange(dirty_, {});
    for (const auto& [client, one] : dirty) {
      lock.unlock();
      const Status status = one.trace->Sync();
      if (!status.ok()) TellDisk(status);
      lock.lock();
      // Its client may be gone.
      if (!status.ok()) known_.erase(one.trace->name());
      Put({.client = client, .next = one.next, .status = status});
    }
    syncing_ = false;
    idle_.notify_all();
  }

  void Put(Event event) {
    events_.push_back(std::move(event));
    event_.Set();
  }

  const FileKeeperOptions options_;
  const UniqueFd directory_;
  ReceiverCounts own_counts_;
  ReceiverCounts& counts_;
  KeptPlaces places_;
  std::map<uint64_t, std::string> held_;  // by client
  const EventFd event_;
  std::map<uint64_t, std::shared_ptr<StoredTrace>> open_;

  std::mutex mu_;                 // guards all below
  std::condition_variable work_;  // for OpenFiles
  std::condition_variable dirt_;  // for SyncFiles
  std::condition_variable idle_;
  std::deque<Opening> opening_;
  std::deque<std::pair<uint64_t, std::shared_ptr<StoredTrace>>> opened_;
  uint64_t looking_at_ = 0;
  std::map<uint64_t, Dirty> dirty_;
  bool syncing_ = false;
  std::vector<Event> events_;
  bool ending_ = false;
  std::unordered_map<std::string, KnownEnd> known_;  // by file name
  // By trace: when it may be opened a whole burst of times again.
  std::unordered_map<std::string, Clock::time_point> reopenings_;
  std::thread sync_thread_;
  std::thread open_thread_;
  Retention retention_;
};

std::vector<std::string> NamesOfTraces(int directory) {
  Result<std::vector<std::string>> names = NamesInFolder(directory);
  if (!names.ok()) return {};
  std::erase_if(*names, [](const std::string& name) { return name[0] == '.'; });
  return *std::move(names);
}

}  // namespace

Result<std::unique_ptr<Keeper>> MakeFileKeeper(FileKeeperOptions options) {
  const std::string what = "directory '" + options.directory + "'";
  UniqueFd directory(
      ::open(options.directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) {
    return Status::System(errno,
                          what + (errno == ENOENT ? " (make it first)" : ""));
  }
  // Into the sandbox goes a directory that leads nowhere else; that one cannot
  // be synced, one opened through it can.
  const UniqueFd enclosed = EncloseFolder(std::move(directory));
  directory.Reset(
      ::openat(enclosed.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return Status::System(errno, what);
  if (::flock(directory.get(), LOCK_EX | LOCK_NB) != 0) {
    return Status::System(
        errno, what + " is used by another tracefs-recv; choose another one");
  }
  const std::vector<std::string> names = NamesOfTraces(directory.get());
  return std::unique_ptr<Keeper>(std::make_unique<FileKeeper>(
      std::move(options), std::move(directory), names));
}

}  // namespace tracefs
