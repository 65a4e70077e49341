// Worker: a thread with a name, which no signal interrupts, and which its owner
// wakes, ends and waits for.
//
// The loop belongs to the owner, and so does the lock of what it works on:
//
//   Status Start() { return worker_.Start("tracefs-x", [this] { Loop(); }); }
//   void Put(Item item) { { lock; items_.push_back(item); } worker_.Wake(); }
//   void Loop() { while (worker_.Wait()) TakeAll(); }
//
// A Wake is never missed: the next wait returns at once. The member stands
// after all that the loop uses, so that it ends before these do.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "tracefs/base/status.h"

namespace tracefs {

class Worker {
 public:
  Worker() = default;
  ~Worker() { Stop(); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Starts the thread, which does `run`; `name`: as of StartThread. Where the
  // system has no more threads nothing runs, and everything else does nothing.
  Status Start(const char* name, std::function<void()> run);
  // A thread that does `turn` after each `interval`, and soon after a Wake.
  Status StartTurns(const char* name, std::chrono::nanoseconds interval,
                    std::function<void()> turn);
  // Of who starts and stops it.
  bool started() const { return thread_.joinable(); }

  // --- Any thread.

  // The wait that goes on, or the next one, returns.
  void Wake();
  // Waits return false from now on.
  void End();
  bool ending() const;

  // --- The owner.

  // End, and waits until the thread has ended. May be called again.
  void Stop();
  // Waits until the thread ends by itself.
  void Join();

  // --- The thread itself. False: it is to end.

  bool Wait();
  // Also true when the time is over.
  bool WaitFor(std::chrono::nanoseconds time);
  // Not ended by a Wake, which is kept for the next wait.
  bool Pause(std::chrono::nanoseconds time);

 private:
  mutable std::mutex mu_;
  std::condition_variable wake_;
  bool woken_ = false;   // guarded by mu_
  bool ending_ = false;  // guarded by mu_
  std::thread thread_;   // of the owner
};

}  // namespace tracefs
