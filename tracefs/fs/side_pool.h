// SidePool: threads for requests that may have to wait for another process, so
// that the threads that read requests never do.
//
// Requests that another process can hold up for any time (a lease on a file
// below, a file system below whose server does not answer) run here, and those
// that have recently had to wait for a disk (wait_rule.h). Each request has a
// thread of its own while it runs; their number is bounded, and shared out to
// users (user_shares.h). A user's requests beyond that share are put aside
// until one of the user's requests ends; places there are shared out in the
// same way. A user who has used up that share, too, waits for one to end, and
// those who wait come in turn; if none ends for `patience`, requests are
// refused, and then at once, until one does.
//
// A request whose caller is interrupted has its thread interrupted, so that the
// call below ends as it would for the caller. Some calls cannot be interrupted:
// the request is answered without them when its caller is being killed. One
// that was put aside is answered, and never begins.
//
// Threads: any. They are made by one of the pool's own, which is made by Start:
// changes to the thread of a request (ids, processor) are not inherited. One is
// there from the start and stays, so that whatever was taken is served by
// somebody, also when no more can be made. Meanwhile what can be served where
// it was read is not taken, and all else is put aside.
#pragma once

#include <pthread.h>
#include <semaphore.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_set>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/fs/reply_thread.h"
#include "tracefs/fs/user_shares.h"

namespace tracefs {

// A request that goes on in the pool.
class SideTask {
 public:
  // `bytes`: what it holds beyond itself.
  SideTask(uint64_t unique, uint32_t uid, size_t bytes = 0)
      : unique_(unique), uid_(uid), bytes_(bytes) {}
  virtual ~SideTask() = default;

  // Does it and answers it. On a thread of the pool.
  virtual void Run() = 0;
  // Whether the process that waits for the answer is being killed.
  virtual bool CallerIsDying() const = 0;
  // Answers it with EINTR, unless it is answered. Run may be in progress, and
  // goes on. Any thread. False if that cannot be done yet.
  virtual bool GiveUp() = 0;
  // Answers it with EINTR: it has not begun, and never will. Any thread.
  virtual void EndUnbegun() = 0;
  // It must not be answered any more: the connection is about to end.
  virtual void Forsake() = 0;

  uint64_t unique() const { return unique_; }  // of the FUSE request; 0: none
  uint32_t uid() const { return uid_; }
  size_t bytes() const { return bytes_; }

 private:
  const uint64_t unique_;
  const uint32_t uid_;
  const size_t bytes_;
};

class SidePool {
 public:
  using Milliseconds = std::chrono::milliseconds;
  struct Limits {
    int tasks = 192;  // that run, and threads
    int for_root = 24;
    int aside = 0;  // that wait to run
    size_t aside_bytes = size_t{128} << 20;
    Milliseconds patience{1000};
    // A thread ends after this long without work.
    Milliseconds idle{10000};
  };

  explicit SidePool(const Limits& limits);
  // Only where all threads have ended (Stop), or where it was never started.
  ~SidePool();
  SidePool(const SidePool&) = delete;
  SidePool& operator=(const SidePool&) = delete;

  // Before the first task, by a thread that serves no requests. kSystem if
  // there can be no thread.
  Status Start();
  bool started() const { return manager_.joinable(); }

  enum class Taken : uint8_t { kYes, kFull, kRefused };
  // Takes the task unless its user has used up the share. If so: kFull at once,
  // unless it has to be taken or refused (`insist`), which may wait, as long as
  // none of the user's ends for `patience` each time; a thread that sends
  // replies for others (`replies`, may be null) does so meanwhile.
  Taken Submit(std::shared_ptr<SideTask> task, ReplyThread* replies,
               bool insist = true);

  // The kernel says that the caller of this request has a signal to handle. If
  // the pool does not have it, it may get it in a moment.
  void Interrupt(uint64_t unique);

  // No more tasks; those that are left are forsaken, their threads interrupted.
  // True if all threads end within `patience`. If not, they hang in calls that
  // cannot be interrupted: everything they may use must live as long as the
  // process.
  bool Stop(Milliseconds patience);

  int capacity() const { return shares_.capacity(); }
  int share_of_a_user() const { return shares_.largest_share(); }
  int running() const { return shares_.used(); }
  // That may wait to run, and do.
  int room_aside() const { return aside_shares_.capacity(); }
  int aside() const { return aside_shares_.used(); }
  uint64_t refused() const;
  // Whether a request has been running for so long.
  bool HasOneSince(Milliseconds time) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Running {
    std::shared_ptr<SideTask> task;
    pthread_t thread;
    Clock::time_point since;
    bool interrupted = false;
    bool given_up = false;
  };

  struct Aside {
    std::shared_ptr<SideTask> task;
    Clock::time_point since;
  };
  using Asides = std::list<Aside>;

  // A thread of the pool, on its own stack. Each has a semaphore, because a
  // condition variable and its lock would be most of the cost of handing a
  // request over.
  struct Worker {
    Worker() { ::sem_init(&wake, 0, 0); }
    ~Worker() { ::sem_destroy(&wake); }
    Worker(const Worker&) = delete;
    Worker& operator=(const Worker&) = delete;

    sem_t wake;
    const pthread_t thread = ::pthread_self();
    std::optional<std::list<Running>::iterator> work;  // none: it is to end
  };
  // A task that a thread waits with, in Submit.
  struct Waiting {
    std::shared_ptr<SideTask> task;
    ReplyThread* replies = nullptr;
    bool taken = false;      // and no longer in the list
    bool one_ended = false;  // of its user's, since it was last looked
  };

  static void Wake(Worker& worker);
  bool OneOfHisWaits(uint32_t uid) const;
  void AdmitWaiting();
  bool Await(std::unique_lock<std::mutex>& lock, Waiting& self);
  // False: not taken. Sets the worker that is to be woken for it, or null.
  bool TakeLocked(const std::shared_ptr<SideTask>& task, bool insist,
                  Worker** worker);
  std::list<Running>::iterator Began(std::shared_ptr<SideTask> task,
                                     pthread_t thread);
  bool AwaitWork(Worker& self) const;
  bool Rest(std::unique_lock<std::mutex>& lock, Worker& self);
  std::shared_ptr<SideTask> TakeAsideOut(uint32_t uid, Asides& tasks,
                                         Asides::iterator at);
  bool BringBack(uint32_t uid);
  void AttendLater();
  void EndAsideOfTheDying(std::unique_lock<std::mutex>& lock);
  void Work();
  void Manage();
  void MakeThreads(std::unique_lock<std::mutex>& lock);
  void Attend(std::unique_lock<std::mutex>& lock);
  bool WasInterruptedBefore(uint64_t unique);

  const Limits limits_;
  UserShares shares_;
  UserShares aside_shares_;

  mutable std::mutex mu_;  // guards all below
  std::condition_variable manage_;
  std::condition_variable ended_;  // a task, or a thread
  std::deque<std::shared_ptr<SideTask>> queue_;
  std::list<Running> running_;
  std::map<uint32_t, Asides> aside_;  // of each user, oldest first
  std::list<Waiting*> waiting_;       // oldest first
  size_t aside_bytes_ = 0;
  uint64_t aside_turn_ = 0;
  int threads_ = 0;
  std::vector<Worker*> idle_;  // the last one that came is the first to go
  int wanted_ = 0;             // threads to be made
  bool is_short_ = false;      // the last one could not be made
  bool ready_ = false;         // the first one was made, or could not be
  bool attended_ = false;      // what runs is looked after
  bool began_ = false;         // something did since it was last
  bool stopping_ = false;
  uint64_t refused_ = 0;
  std::unordered_set<uint32_t> stuck_;  // users whose requests do not end
  std::array<uint64_t, 64> early_{};    // interrupted before they came here
  size_t next_early_ = 0;
  std::thread manager_;
};

}  // namespace tracefs
