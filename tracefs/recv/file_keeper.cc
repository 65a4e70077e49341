#include "tracefs/recv/file_keeper.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "tracefs/recv/stored_trace.h"

namespace tracefs {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

// Between two rounds of fdatasync: what comes meanwhile shares the next one.
constexpr auto kSyncInterval = milliseconds(20);

class FileKeeper final : public Keeper {
 public:
  FileKeeper(FileKeeperOptions options, UniqueFd directory, size_t traces)
      : options_(std::move(options)),
        directory_(std::move(directory)),
        traces_(traces),
        event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    thread_ = std::thread([this] { Run(); });
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  FileKeeper(const FileKeeper&) = delete;
  FileKeeper& operator=(const FileKeeper&) = delete;
  ~FileKeeper() override {
    {
      std::lock_guard lock(mu_);
      ending_ = true;
    }
    work_.notify_one();
    thread_.join();
  }

  bool live() const override { return false; }

  void Open(uint64_t client, const std::string& name,
            const net::Hello& hello) override {
    auto trace = std::make_shared<StoredTrace>(
        directory_.get(), name + ".trace", hello.preamble, hello.serial);
    {
      std::lock_guard lock(mu_);
      opening_.push_back({client, std::move(trace)});
    }
    work_.notify_one();
  }

  Status Write(uint64_t client, ByteSpan bytes, size_t whole,
               uint64_t next) override {
    const std::shared_ptr<StoredTrace>& trace = open_.at(client);
    if (!trace->exists() && traces_ >= options_.max_traces) {
      return Status::Invalid("there are " + std::to_string(traces_) +
                             " traces already, the limit; move some away or "
                             "raise --max-traces");
    }
    if (options_.max_trace_bytes != 0 &&
        trace->size() + bytes.size() > options_.max_trace_bytes) {
      return Status::Invalid("the trace is longer than --max-trace allows");
    }
    const bool existed = trace->exists();
    const Status status = trace->Append(bytes, whole, next);
    if (!existed && trace->exists()) ++traces_;
    if (!status.ok()) return status;
    if (whole == 0) return Status::Ok();
    {
      std::lock_guard lock(mu_);
      dirty_[client] = {trace, next};
    }
    work_.notify_one();
    return Status::Ok();
  }

  void Close(uint64_t client) override {
    if (const auto found = open_.find(client); found != open_.end()) {
      const bool existed = found->second->exists();
      found->second->Abandon();
      // Nothing whole ever came.
      if (existed && found->second->next() == 0) --traces_;
      open_.erase(found);
    }
    std::lock_guard lock(mu_);
    const auto of_client = [&](const auto& job) { return job.first == client; };
    std::erase_if(opening_, of_client);
    std::erase_if(opened_, of_client);
    // Its file is looked through to the end all the same; who opens it next
    // waits behind that.
    if (looking_at_ == client) looking_at_ = 0;
    std::erase_if(events_,
                  [&](const Event& event) { return event.client == client; });
  }

  std::vector<Event> TakeEvents() override {
    uint64_t count;
    (void)!::read(event_.get(), &count, sizeof count);
    std::lock_guard lock(mu_);
    for (auto& [client, trace] : opened_) open_[client] = std::move(trace);
    opened_.clear();
    return std::exchange(events_, {});
  }
  int event_fd() const override { return event_.get(); }

  Status Finish() override {
    std::unique_lock lock(mu_);
    work_.notify_one();
    idle_.wait(lock, [&] { return dirty_.empty() && !syncing_; });
    return Status::Ok();
  }

 private:
  struct Dirty {
    std::shared_ptr<StoredTrace> trace;
    uint64_t next = 0;
  };

  void Run() {
    ::pthread_setname_np(::pthread_self(), "tracefs-disk");
    auto last_round = Clock::now() - kSyncInterval;
    std::unique_lock lock(mu_);
    for (;;) {
      work_.wait(lock, [&] {
        return ending_ || !opening_.empty() || !dirty_.empty();
      });
      if (!opening_.empty()) {
        OpenOne(lock);
        continue;
      }
      if (dirty_.empty()) return;  // ending
      // Not waited for when someone wants to open, or all is to end.
      if (!ending_ && work_.wait_until(lock, last_round + kSyncInterval, [&] {
            return ending_ || !opening_.empty();
          })) {
        if (!opening_.empty()) continue;
      }
      last_round = Clock::now();
      SyncAll(lock);
    }
  }

  void OpenOne(std::unique_lock<std::mutex>& lock) {
    auto [client, trace] = std::move(opening_.front());
    opening_.pop_front();
    looking_at_ = client;
    lock.unlock();
    Status status = trace->Find();
    // What the last receiver wrote may not have reached the disk.
    if (status.ok()) status = trace->Sync();
    lock.lock();
    // The client has gone meanwhile.
    if (std::exchange(looking_at_, 0) != client) return;
    Put({.client = client,
         .opened = true,
         .next = trace->next(),
         .status = status});
    if (status.ok()) opened_.emplace_back(client, std::move(trace));
  }

  void SyncAll(std::unique_lock<std::mutex>& lock) {
    syncing_ = true;
    const std::map<uint64_t, Dirty> dirty = std::exchange(dirty_, {});
    for (const auto& [client, one] : dirty) {
      lock.unlock();
      const Status status = one.trace->Sync();
      lock.lock();
      Put({.client = client, .next = one.next, .status = status});
    }
    syncing_ = false;
    idle_.notify_all();
  }

  void Put(Event event) {
    events_.push_back(std::move(event));
    const uint64_t one = 1;
    (void)!::write(event_.get(), &one, sizeof one);
  }

  const FileKeeperOptions options_;
  const UniqueFd directory_;
  size_t traces_;  // files
  const UniqueFd event_;
  std::map<uint64_t, std::shared_ptr<StoredTrace>> open_;

  std::mutex mu_;  // guards all below
  std::condition_variable work_;
  std::condition_variable idle_;
  std::deque<std::pair<uint64_t, std::shared_ptr<StoredTrace>>> opening_;
  std::deque<std::pair<uint64_t, std::shared_ptr<StoredTrace>>> opened_;
  uint64_t looking_at_ = 0;
  std::map<uint64_t, Dirty> dirty_;
  bool syncing_ = false;
  std::vector<Event> events_;
  bool ending_ = false;
  std::thread thread_;
};

size_t CountTraces(int directory) {
  const int copy = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (copy < 0) return 0;
  DIR* const list = ::fdopendir(copy);
  if (list == nullptr) {
    ::close(copy);
    return 0;
  }
  size_t count = 0;
  while (const dirent* entry = ::readdir(list)) {
    if (entry->d_name[0] != '.') ++count;
  }
  ::closedir(list);
  return count;
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
  if (::faccessat(directory.get(), ".", W_OK, AT_EACCESS) != 0) {
    return Status::System(errno, what);
  }
  if (::flock(directory.get(), LOCK_EX | LOCK_NB) != 0) {
    return Status::System(
        errno, what + " is used by another tracefs-recv; choose another one");
  }
  const size_t traces = CountTraces(directory.get());
  return std::unique_ptr<Keeper>(std::make_unique<FileKeeper>(
      std::move(options), std::move(directory), traces));
}

}  // namespace tracefs
