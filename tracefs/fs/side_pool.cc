#include "tracefs/fs/side_pool.h"

#include <signal.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace tracefs {
namespace {

constexpr std::chrono::milliseconds kTick(50);
// What takes longer is looked after.
constexpr std::chrono::milliseconds kLong(100);
constexpr size_t kStackBytes = 512 << 10;

// Ends a call that waits; nobody else sends it.
int InterruptSignal() { return SIGRTMIN + 3; }

}  // namespace

SidePool::SidePool(const Limits& limits)
    : limits_(limits), shares_(limits.tasks, limits.for_root) {}

SidePool::~SidePool() {
  if (started()) Stop(Milliseconds(0));
}

void SidePool::Start() {
  struct sigaction action {};
  action.sa_handler = [](int) {};  // no SA_RESTART: the call is to end
  ::sigaction(InterruptSignal(), &action, nullptr);
  manager_ = std::thread([this] {
    ::pthread_setname_np(::pthread_self(), "tracefs-side");
    Manage();
  });
}

uint64_t SidePool::refused() const {
  std::lock_guard lock(mu_);
  return refused_;
}

bool SidePool::TakeShare(uint32_t uid, ReplyThread* replies) {
  if (shares_.Take(uid)) return true;
  const Clock::time_point end = Clock::now() + limits_.patience;
  std::unique_lock lock(mu_);
  while (!stopping_ && !stuck_.contains(uid)) {
    if (Clock::now() >= end) {
      stuck_.insert(uid);
      break;
    }
    if (replies != nullptr) {
      // His requests end by replies that this very thread is to send.
      lock.unlock();
      replies->ServeFor(kTick);
      lock.lock();
    } else {
      ended_.wait_for(lock, kTick);
    }
    if (shares_.Take(uid)) return true;
  }
  ++refused_;
  return false;
}

bool SidePool::Submit(std::shared_ptr<SideTask> task, ReplyThread* replies) {
  const uint32_t uid = task->uid();
  if (!TakeShare(uid, replies)) return false;
  std::lock_guard lock(mu_);
  if (stopping_) {
    shares_.Give(uid);
    return false;
  }
  queue_.push_back(std::move(task));
  if (static_cast<int>(queue_.size()) <= idle_) {
    work_.notify_one();
  } else {
    ++wanted_;
    manage_.notify_one();
  }
  return true;
}

bool SidePool::WasInterruptedBefore(uint64_t unique) {
  const auto found = std::find(early_.begin(), early_.end(), unique);
  if (unique == 0 || found == early_.end()) return false;
  *found = 0;
  return true;
}

void SidePool::Work() {
  std::unique_lock lock(mu_);
  for (;;) {
    ++idle_;
    work_.wait_for(lock, limits_.idle,
                   [&] { return !queue_.empty() || stopping_; });
    --idle_;
    if (queue_.empty()) break;
    running_.push_front({std::move(queue_.front()), ::pthread_self(),
                         Clock::now(), false, false});
    queue_.pop_front();
    const auto mine = running_.begin();
    const std::shared_ptr<SideTask> task = mine->task;
    mine->interrupted = WasInterruptedBefore(task->unique());
    began_ = true;
    if (!attended_) {
      attended_ = true;
      manage_.notify_one();
    }
    lock.unlock();
    task->Run();
    lock.lock();
    running_.erase(mine);
    shares_.Give(task->uid());
    stuck_.erase(task->uid());
    ended_.notify_all();
  }
  --threads_;
  ended_.notify_all();
}

void SidePool::Interrupt(uint64_t unique) {
  std::lock_guard lock(mu_);
  for (Running& running : running_) {
    if (running.task->unique() != unique) continue;
    running.interrupted = true;
    ::pthread_kill(running.thread, InterruptSignal());
    return;
  }
  early_[next_early_++ % early_.size()] = unique;
}

void SidePool::MakeThreads(std::unique_lock<std::mutex>& lock) {
  const int more = std::min(wanted_, limits_.tasks - threads_);
  wanted_ = 0;
  threads_ += std::max(more, 0);
  lock.unlock();
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, kStackBytes);
  ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  int failed = 0;
  for (int i = 0; i < more; ++i) {
    pthread_t thread;
    const auto work = [](void* pool) -> void* {
      static_cast<SidePool*>(pool)->Work();
      return nullptr;
    };
    // Without a thread its task waits for one that is there.
    if (::pthread_create(&thread, &attributes, work, this) != 0) ++failed;
  }
  ::pthread_attr_destroy(&attributes);
  lock.lock();
  threads_ -= failed;
  // Not even one: try again in a moment.
  if (failed > 0 && threads_ == 0) {
    wanted_ = 1;
    manage_.wait_for(lock, kTick);
  }
}

// A signal that comes just before the call is lost: sent again and again until
// the call has ended. Whether a caller is being killed is asked for, too: over
// io_uring the kernel does not tell of those who were being killed when their
// request was made.
void SidePool::Attend(std::unique_lock<std::mutex>& lock) {
  const Clock::time_point now = Clock::now();
  std::vector<std::shared_ptr<SideTask>> tasks;
  for (const Running& running : running_) {
    if (running.interrupted) ::pthread_kill(running.thread, InterruptSignal());
    if (!running.given_up && now - running.since >= kLong) {
      tasks.push_back(running.task);
    }
  }
  if (tasks.empty()) return;
  lock.unlock();
  std::erase_if(tasks, [](const auto& task) { return !task->CallerIsDying(); });
  std::erase_if(tasks, [](const auto& task) { return !task->GiveUp(); });
  lock.lock();
  for (Running& running : running_) {
    if (std::find(tasks.begin(), tasks.end(), running.task) == tasks.end()) {
      continue;
    }
    running.interrupted = running.given_up = true;
  }
}

void SidePool::Manage() {
  std::unique_lock lock(mu_);
  while (!stopping_) {
    if (wanted_ > 0) {
      MakeThreads(lock);
    } else if (attended_) {
      began_ = false;
      manage_.wait_for(lock, kTick);
      Attend(lock);
      // Not for each of many short ones anew.
      attended_ = began_ || !running_.empty();
    } else {
      manage_.wait(lock);
    }
  }
}

bool SidePool::Stop(Milliseconds patience) {
  std::unique_lock lock(mu_);
  if (!stopping_) {
    stopping_ = true;
    for (const std::shared_ptr<SideTask>& task : queue_) {
      task->Forsake();
      shares_.Give(task->uid());
    }
    queue_.clear();
    work_.notify_all();
    manage_.notify_all();
    ended_.notify_all();
    if (manager_.joinable()) {
      lock.unlock();
      manager_.join();
      lock.lock();
    }
  }
  const Clock::time_point end = Clock::now() + patience;
  while (threads_ > 0 && Clock::now() < end) {
    for (const Running& running : running_) {
      running.task->Forsake();
      ::pthread_kill(running.thread, InterruptSignal());
    }
    ended_.wait_for(lock, std::chrono::milliseconds(20));
  }
  return threads_ == 0;
}

}  // namespace tracefs
