// Which policy the queue threads of this mount have (daemon/thread_policy.h):
// as configured, or by measurement at the start and again when the threads wait
// for a processor much longer, or shorter, than before. Threads that are to run
// before all others may stand otherwise while that serves more requests
// (standing_choice.h).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tracefs/base/event_fd.h"
#include "tracefs/base/status.h"
#include "tracefs/daemon/round_trips.h"
#include "tracefs/daemon/thread_policy.h"
#include "tracefs/mount/standing_choice.h"

namespace tracefs {

// Says when it is time to measure again, from the mean wait of each interval.
class LoadChange {
 public:
  // Takes one interval; true if the load has changed permanently: twice in a
  // row it was far from the last measurement.
  bool Note(const RunDelay& interval);

 private:
  std::optional<double> measured_at_;  // ns
  int far_ = 0;
};

class QueueThreads {
 public:
  // `forced`: used without measuring. While this process has only one thread.
  // Over /dev/fuse (`rings` is false) it changes nothing, since no policy helps
  // there.
  QueueThreads(std::optional<ThreadPolicy> forced, bool rings);
  ~QueueThreads() { Stop(); }
  QueueThreads(const QueueThreads&) = delete;
  QueueThreads& operator=(const QueueThreads&) = delete;

  ThreadPolicy policy() const { return policy_.load(); }
  // Why the requested policy is impossible; empty: it is possible.
  const std::string& refusal() const { return refusal_; }
  // For `explain`: what was chosen, and by which figures. Threads: any.
  std::string Choice() const;
  std::string Why() const;

  // Checks from time to time whether the load has changed; then calls `apply`
  // with the better policy, to be adopted by the threads that serve. `proc`: a
  // descriptor of /proc. Does nothing if there is no choice.
  Status Watch(int proc, std::function<void(ThreadPolicy)> apply);
  void Stop();

 private:
  using Apply = std::function<void(ThreadPolicy)>;

  void Measure();
  void Look(int proc, const Apply& apply);
  void Stand(QueueStanding standing, const Apply& apply);

  const bool rings_;
  const bool forced_;
  OwnSession session_;
  std::vector<ThreadPolicy> candidates_;
  std::unique_ptr<RoundTrips> round_trips_;
  std::string refusal_;
  std::atomic<ThreadPolicy> policy_{ThreadPolicy::kNormal};
  mutable std::mutex mu_;
  std::string figures_;  // guarded by mu_
  std::string served_;   // figures of StandingChoice, the same
  int measured_ = 0;     // the same
  std::atomic<QueueStanding> standing_{QueueStanding::kAtOnce};
  EventFd stop_;
  EventFd busy_;
  std::thread watcher_;
};

}  // namespace tracefs
