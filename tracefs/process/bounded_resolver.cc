#include "tracefs/process/bounded_resolver.h"

#include <pthread.h>
#include <sys/resource.h>

#include "tracefs/base/clock.h"

namespace tracefs {

BoundedResolver::~BoundedResolver() {
  {
    std::lock_guard lock(mu_);
    stopping_ = true;
  }
  asked_.notify_all();
  if (reader_.joinable()) reader_.join();
}

bool BoundedResolver::Resolve(uint32_t tid, std::chrono::milliseconds limit,
                              CallerInfo* caller) {
  const auto request = std::make_shared<Request>();
  request->tid = tid;
  std::unique_lock lock(mu_);
  if (queue_.size() >= kMaxQueued) return false;
  if (!reader_.joinable()) reader_ = std::thread([this] { Read(); });
  queue_.push_back(request);
  asked_.notify_one();
  if (!answered_.wait_for(lock, limit, [&] { return request->done; })) {
    return false;
  }
  if (request->found) *caller = request->caller;
  return request->found;
}

void BoundedResolver::Read() {
  ::pthread_setname_np(::pthread_self(), "tracefs-proc");
  // Somebody waits for each answer. Without the privilege it takes longer.
  ::setpriority(PRIO_PROCESS, 0, -10);
  std::unique_lock lock(mu_);
  for (;;) {
    asked_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
    if (stopping_) return;
    const std::shared_ptr<Request> request = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    const CallerInfo* found = table_.Resolve(request->tid, MonotonicNs());
    lock.lock();
    request->found = found != nullptr;
    if (found != nullptr) request->caller = *found;
    request->done = true;
    answered_.notify_all();
  }
}

}  // namespace tracefs
