#include "tracefs/base/worker.h"

#include <utility>

#include "tracefs/base/thread.h"

namespace tracefs {

Status Worker::Start(const char* name, std::function<void()> run) {
  {
    std::lock_guard lock(mu_);
    woken_ = ending_ = false;
  }
  return StartThread(name, std::move(run), &thread_);
}

Status Worker::StartTurns(const char* name, std::chrono::nanoseconds interval,
                          std::function<void()> turn) {
  return Start(name, [this, interval, turn = std::move(turn)] {
    while (WaitFor(interval)) turn();
  });
}

void Worker::Wake() {
  {
    std::lock_guard lock(mu_);
    woken_ = true;
  }
  wake_.notify_all();
}

void Worker::End() {
  {
    std::lock_guard lock(mu_);
    ending_ = true;
  }
  wake_.notify_all();
}

bool Worker::ending() const {
  std::lock_guard lock(mu_);
  return ending_;
}

void Worker::Stop() {
  End();
  Join();
}

void Worker::Join() {
  if (thread_.joinable()) thread_.join();
}

bool Worker::Wait() {
  std::unique_lock lock(mu_);
  wake_.wait(lock, [this] { return woken_ || ending_; });
  woken_ = false;
  return !ending_;
}

bool Worker::WaitFor(std::chrono::nanoseconds time) {
  std::unique_lock lock(mu_);
  wake_.wait_for(lock, time, [this] { return woken_ || ending_; });
  woken_ = false;
  return !ending_;
}

bool Worker::Pause(std::chrono::nanoseconds time) {
  std::unique_lock lock(mu_);
  return !wake_.wait_for(lock, time, [this] { return ending_; });
}

}  // namespace tracefs
