#include "tracefs/fs/side_pool.h"

#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <utility>
#include <vector>

#include "tracefs/base/thread.h"
#include "tracefs/base/tsan.h"

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
    : limits_(limits),
      shares_(limits.tasks, limits.for_root),
      aside_shares_(limits.aside, limits.aside / 8) {}

SidePool::~SidePool() {
  if (started()) Stop(Milliseconds(0));
}

Status SidePool::Start() {
  struct sigaction action {};
  action.sa_handler = [](int) {};  // no SA_RESTART: the call is to end
  ::sigaction(InterruptSignal(), &action, nullptr);
  const Status started = StartThread(
      "tracefs-side",
      [this] {
        // The pool's threads have its mask.
        sigset_t interrupt;
        ::sigemptyset(&interrupt);
        ::sigaddset(&interrupt, InterruptSignal());
        ::pthread_sigmask(SIG_UNBLOCK, &interrupt, nullptr);
        Manage();
      },
      &manager_);
  if (!started.ok()) return started;
  std::unique_lock lock(mu_);
  ended_.wait(lock, [this] { return ready_; });
  if (threads_ > 0) return Status::Ok();
  lock.unlock();
  Stop(Milliseconds(0));
  return Status::System(EAGAIN, "a thread for requests that wait");
}

uint64_t SidePool::refused() const {
  std::lock_guard lock(mu_);
  return refused_;
}

bool SidePool::HasOneSince(Milliseconds time) const {
  const Clock::time_point now = Clock::now();
  std::lock_guard lock(mu_);
  return std::any_of(
      running_.begin(), running_.end(),
      [&](const Running& running) { return now - running.since >= time; });
}

bool SidePool::TakeLocked(const std::shared_ptr<SideTask>& task, bool insist,
                          Worker** worker) {
  const uint32_t uid = task->uid();
  *worker = nullptr;
  const bool nobody_is_free = is_short_ && idle_.empty();
  if (nobody_is_free && !insist) return false;
  if (!nobody_is_free && !aside_.contains(uid) && shares_.Take(uid)) {
    if (idle_.empty()) {
      queue_.push_back(task);
      ++wanted_;
      manage_.notify_one();
      return true;
    }
    *worker = idle_.back();
    idle_.pop_back();
    (*worker)->work = Began(task, (*worker)->thread);
    return true;
  }
  if (aside_bytes_ + task->bytes() > limits_.aside_bytes ||
      !aside_shares_.Take(uid)) {
    return false;
  }
  aside_bytes_ += task->bytes();
  aside_[uid].push_back({task, Clock::now()});
  AttendLater();
  return true;
}

void SidePool::AttendLater() {
  if (attended_) return;
  attended_ = true;
  manage_.notify_one();
}

// A share of that user is free: it goes to the next user who may have it, to
// the same user last. The thread that returned it takes the request. False: no
// user may have it.
bool SidePool::BringBack(uint32_t uid) {
  auto at = aside_.upper_bound(uid);
  for (size_t i = 0; i < aside_.size(); ++i, ++at) {
    if (at == aside_.end()) at = aside_.begin();
    if (!shares_.Take(at->first)) continue;
    queue_.push_back(TakeAsideOut(at->first, at->second, at->second.begin()));
    if (at->second.empty()) aside_.erase(at);
    return true;
  }
  return false;
}

void SidePool::Wake(Worker& worker) {
  TsanRelease(&worker.wake);
  ::sem_post(&worker.wake);
}

bool SidePool::OneOfHisWaits(uint32_t uid) const {
  return std::any_of(
      waiting_.begin(), waiting_.end(),
      [&](const Waiting* waiting) { return waiting->task->uid() == uid; });
}

// Takes tasks that are waited with, of each user the oldest first.
void SidePool::AdmitWaiting() {
  std::vector<uint32_t> full;
  for (auto at = waiting_.begin(); at != waiting_.end();) {
    Waiting& waiting = **at;
    const uint32_t uid = waiting.task->uid();
    Worker* worker = nullptr;
    if (std::find(full.begin(), full.end(), uid) != full.end() ||
        !TakeLocked(waiting.task, /*insist=*/true, &worker)) {
      full.push_back(uid);
      ++at;
      continue;
    }
    if (worker != nullptr) Wake(*worker);
    waiting.taken = true;
    if (waiting.replies != nullptr) waiting.replies->Wake();
    at = waiting_.erase(at);
  }
}

// Waits with the task until it is taken (true), or none of its user's requests
// has ended for `patience`, in which this thread has looked at least four times
// (it may have had no processor). Ten times that is the most, since it has
// others to serve.
bool SidePool::Await(std::unique_lock<std::mutex>& lock, Waiting& self) {
  const uint32_t uid = self.task->uid();
  waiting_.push_back(&self);
  Clock::duration left = limits_.patience;
  Clock::duration left_in_all = 10 * limits_.patience;
  while (!self.taken && !stopping_ && !stuck_.contains(uid)) {
    if (left <= Clock::duration::zero()) stuck_.insert(uid);
    if (std::min(left, left_in_all) <= Clock::duration::zero()) break;
    const Clock::time_point begin = Clock::now();
    if (self.replies != nullptr) {
      // His requests end by replies that this very thread is to send.
      lock.unlock();
      self.replies->ServeFor(kTick);
      lock.lock();
    } else {
      ended_.wait_for(lock, kTick);
    }
    const Clock::duration took = Clock::now() - begin;
    left -= std::min<Clock::duration>(took, limits_.patience / 4);
    left_in_all -= took;
    if (std::exchange(self.one_ended, false)) left = limits_.patience;
    if (!stopping_) AdmitWaiting();
  }
  if (!self.taken) std::erase(waiting_, &self);
  return self.taken;
}

SidePool::Taken SidePool::Submit(std::shared_ptr<SideTask> task,
                                 ReplyThread* replies, bool insist) {
  const uint32_t uid = task->uid();
  Worker* worker = nullptr;
  std::unique_lock lock(mu_);
  // Nobody comes before those who wait.
  if (!stopping_ && !OneOfHisWaits(uid) && TakeLocked(task, insist, &worker)) {
    // The woken thread finds the lock free. It is alive: it waits for this.
    lock.unlock();
    if (worker != nullptr) Wake(*worker);
    return Taken::kYes;
  }
  if (!insist) return Taken::kFull;
  Waiting self{.task = std::move(task), .replies = replies};
  if (Await(lock, self)) return Taken::kYes;
  ++refused_;
  return Taken::kRefused;
}

bool SidePool::WasInterruptedBefore(uint64_t unique) {
  const auto found = std::find(early_.begin(), early_.end(), unique);
  if (unique == 0 || found == early_.end()) return false;
  *found = 0;
  return true;
}

std::list<SidePool::Running>::iterator SidePool::Began(
    std::shared_ptr<SideTask> task, pthread_t thread) {
  const bool interrupted = WasInterruptedBefore(task->unique());
  running_.push_front(
      {std::move(task), thread, Clock::now(), interrupted, false});
  began_ = true;
  AttendLater();
  return running_.begin();
}

// Whether it was woken up within that time.
bool SidePool::AwaitWork(Worker& self) const {
  timespec end;
  ::clock_gettime(CLOCK_MONOTONIC, &end);
  const auto ns = std::chrono::nanoseconds(limits_.idle).count() + end.tv_nsec;
  end.tv_sec += ns / 1'000'000'000;
  end.tv_nsec = ns % 1'000'000'000;
  int rc;
  do {
    rc = ::sem_clockwait(&self.wake, CLOCK_MONOTONIC, &end);
  } while (rc != 0 && errno == EINTR);
  // The sanitizer does not know sem_clockwait.
  if (rc == 0) TsanAcquire(&self.wake);
  return rc == 0;
}

// Waits for something to do; false: to end. The last thread stays.
bool SidePool::Rest(std::unique_lock<std::mutex>& lock, Worker& self) {
  idle_.push_back(&self);
  for (;;) {
    lock.unlock();
    if (AwaitWork(self)) return self.work.has_value();
    lock.lock();
    const auto at = std::find(idle_.begin(), idle_.end(), &self);
    if (at != idle_.end() && threads_ > 1) {
      idle_.erase(at);
      return false;
    }
  }
}

void SidePool::Work() {
  Worker self;
  std::unique_lock lock(mu_);
  for (;;) {
    if (!queue_.empty()) {
      self.work = Began(std::move(queue_.front()), self.thread);
      queue_.pop_front();
      lock.unlock();
    } else if (stopping_ || !Rest(lock, self)) {
      break;
    }
    const std::shared_ptr<SideTask> task = (*self.work)->task;
    task->Run();
    lock.lock();
    running_.erase(*self.work);
    self.work.reset();
    shares_.Give(task->uid());
    stuck_.erase(task->uid());
    if (!aside_.empty()) BringBack(task->uid());
    for (Waiting* waiting : waiting_) {
      if (waiting->task->uid() == task->uid()) waiting->one_ended = true;
    }
    AdmitWaiting();
    ended_.notify_all();
  }
  if (!lock.owns_lock()) lock.lock();
  --threads_;
  ended_.notify_all();
}

std::shared_ptr<SideTask> SidePool::TakeAsideOut(uint32_t uid, Asides& tasks,
                                                 Asides::iterator at) {
  std::shared_ptr<SideTask> task = std::move(at->task);
  tasks.erase(at);
  aside_bytes_ -= task->bytes();
  aside_shares_.Give(uid);
  return task;
}

void SidePool::Interrupt(uint64_t unique) {
  std::unique_lock lock(mu_);
  for (Running& running : running_) {
    if (running.task->unique() != unique) continue;
    running.interrupted = true;
    ::pthread_kill(running.thread, InterruptSignal());
    return;
  }
  for (auto& [uid, tasks] : aside_) {
    const auto found = std::find_if(
        tasks.begin(), tasks.end(),
        [&](const Aside& aside) { return aside.task->unique() == unique; });
    if (found == tasks.end()) continue;
    const std::shared_ptr<SideTask> task = TakeAsideOut(uid, tasks, found);
    std::erase_if(aside_, [](const auto& user) { return user.second.empty(); });
    lock.unlock();
    task->EndUnbegun();
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
    // Without a new thread, its task waits for an existing one.
    if (::pthread_create(&thread, &attributes, work, this) != 0) ++failed;
  }
  ::pthread_attr_destroy(&attributes);
  lock.lock();
  threads_ -= failed;
  const bool was_short = std::exchange(is_short_, failed > 0);
  if (was_short && !is_short_) {
    while (BringBack(0)) ++wanted_;
  }
}

// A signal that comes just before the call is lost, so it is sent again and
// again until the call has ended. It is also checked whether a caller is being
// killed: over io_uring the kernel does not report callers that were being
// killed when their request was made.
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

// The same for those that were put aside: some at a time, for there may be
// many.
void SidePool::EndAsideOfTheDying(std::unique_lock<std::mutex>& lock) {
  constexpr size_t kAtATime = 256;
  const Clock::time_point now = Clock::now();
  std::vector<std::shared_ptr<SideTask>> tasks;
  size_t at = 0;
  size_t all = 0;
  for (const auto& [uid, of_user] : aside_) all += of_user.size();
  const size_t begin = all == 0 ? 0 : aside_turn_ % all;
  for (const auto& [uid, of_user] : aside_) {
    for (const Aside& aside : of_user) {
      const size_t place = at++;
      if (place < begin || place >= begin + kAtATime) continue;
      if (now - aside.since >= kLong) tasks.push_back(aside.task);
    }
  }
  aside_turn_ = begin + kAtATime >= all ? 0 : begin + kAtATime;
  if (tasks.empty()) return;
  lock.unlock();
  std::erase_if(tasks, [](const auto& task) { return !task->CallerIsDying(); });
  lock.lock();
  // Some may have begun.
  std::erase_if(tasks, [&](const auto& task) {
    const auto of_user = aside_.find(task->uid());
    if (of_user == aside_.end()) return true;
    const auto found =
        std::find_if(of_user->second.begin(), of_user->second.end(),
                     [&](const Aside& aside) { return aside.task == task; });
    if (found == of_user->second.end()) return true;
    TakeAsideOut(task->uid(), of_user->second, found);
    return false;
  });
  if (tasks.empty()) return;
  std::erase_if(aside_, [](const auto& user) { return user.second.empty(); });
  lock.unlock();
  for (const auto& task : tasks) task->EndUnbegun();
  lock.lock();
}

void SidePool::Manage() {
  std::unique_lock lock(mu_);
  wanted_ = 1;
  MakeThreads(lock);
  ready_ = true;
  ended_.notify_all();
  while (!stopping_) {
    if (wanted_ > 0) MakeThreads(lock);
    if (stopping_ || wanted_ > 0) continue;
    if (!attended_ && !is_short_) {
      manage_.wait(lock);
      continue;
    }
    began_ = false;
    manage_.wait_for(lock, kTick);
    if (attended_) {
      Attend(lock);
      EndAsideOfTheDying(lock);
    }
    // Not again for each of many short ones.
    attended_ = began_ || !running_.empty() || aside_shares_.used() != 0;
    if (is_short_) wanted_ = std::max(wanted_, 1);
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
    for (const auto& [uid, of_user] : aside_) {
      for (const Aside& aside : of_user) aside.task->Forsake();
    }
    aside_.clear();
    for (Worker* worker : idle_) ::sem_post(&worker->wake);
    idle_.clear();
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
