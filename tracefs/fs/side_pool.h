// SidePool: threads for requests that may have to wait for another process, so
// that those who read requests never do.
//
// What another process can hold up for any time (a lease on a file below, a
// file system below whose server does not answer) is done here. Each request
// has a thread of its own from when it is taken until it is done; their number
// is bounded, and shared out to users (user_shares.h). A user who has his share
// waits for one of his own requests to end, for `patience` at most; if none
// does, he is refused, and at once, until one does.
//
// A request whose caller is interrupted has its thread interrupted, so that the
// call below ends as it would for the caller. Some calls cannot be interrupted:
// the request is answered without them when its caller is being killed.
//
// Threads: any. They are made by one of the pool's own, which is made by Start:
// what has been done to the thread of a request (ids, processor) is not passed
// on.
#pragma once

#include <pthread.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_set>

#include "tracefs/fs/reply_thread.h"
#include "tracefs/fs/user_shares.h"

namespace tracefs {

// A request that goes on in the pool.
class SideTask {
 public:
  SideTask(uint64_t unique, uint32_t uid) : unique_(unique), uid_(uid) {}
  virtual ~SideTask() = default;

  // Does it and answers it. On a thread of the pool.
  virtual void Run() = 0;
  // Whether whoever waits for the answer is being killed.
  virtual bool CallerIsDying() const = 0;
  // Answers it with EINTR, unless it is answered. Run may be under way, and go
  // on. Any thread. False if that cannot be done yet.
  virtual bool GiveUp() = 0;
  // Nobody is to answer it any more: the connection is about to end.
  virtual void Forsake() = 0;

  uint64_t unique() const { return unique_; }  // of the FUSE request; 0: none
  uint32_t uid() const { return uid_; }

 private:
  const uint64_t unique_;
  const uint32_t uid_;
};

class SidePool {
 public:
  using Milliseconds = std::chrono::milliseconds;
  struct Limits {
    int tasks = 192;  // and threads
    int for_root = 24;
    Milliseconds patience{1000};
    // A thread ends when it has had nothing to do for so long.
    Milliseconds idle{10000};
  };

  explicit SidePool(const Limits& limits);
  // Only where all threads have ended (Stop), or where it was never started.
  ~SidePool();
  SidePool(const SidePool&) = delete;
  SidePool& operator=(const SidePool&) = delete;

  // Before the first task, by a thread that serves no requests.
  void Start();
  bool started() const { return manager_.joinable(); }

  // Takes the task, or refuses it (false). May wait for `patience`; a thread
  // that sends replies for others (`replies`, may be null) does so meanwhile.
  bool Submit(std::shared_ptr<SideTask> task, ReplyThread* replies);

  // The kernel says that the caller of this request has a signal to handle. If
  // the pool does not have it, it may get it in a moment.
  void Interrupt(uint64_t unique);

  // No more tasks; those that are left are forsaken, their threads interrupted.
  // True if all threads end within `patience`. If not they hang in calls that
  // cannot be interrupted: whatever they may use must live as long as the
  // process.
  bool Stop(Milliseconds patience);

  int capacity() const { return shares_.capacity(); }
  int share_of_a_user() const { return shares_.largest_share(); }
  int running() const { return shares_.used(); }
  uint64_t refused() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Running {
    std::shared_ptr<SideTask> task;
    pthread_t thread;
    Clock::time_point since;
    bool interrupted = false;
    bool given_up = false;
  };

  bool TakeShare(uint32_t uid, ReplyThread* replies);
  void Work();
  void Manage();
  void MakeThreads(std::unique_lock<std::mutex>& lock);
  void Attend(std::unique_lock<std::mutex>& lock);
  bool WasInterruptedBefore(uint64_t unique);

  const Limits limits_;
  UserShares shares_;

  mutable std::mutex mu_;  // guards all below
  std::condition_variable work_;
  std::condition_variable manage_;
  std::condition_variable ended_;  // a task, or a thread
  std::deque<std::shared_ptr<SideTask>> queue_;
  std::list<Running> running_;
  int threads_ = 0;
  int idle_ = 0;
  int wanted_ = 0;         // threads to be made
  bool attended_ = false;  // what runs is looked after
  bool began_ = false;     // something did since it was last
  bool stopping_ = false;
  uint64_t refused_ = 0;
  std::unordered_set<uint32_t> stuck_;  // users whose requests do not end
  std::array<uint64_t, 64> early_{};    // interrupted before they came here
  size_t next_early_ = 0;
  std::thread manager_;
};

}  // namespace tracefs
