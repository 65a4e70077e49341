// Decides by experiment how the daemon's session (daemon/thread_policy.h) is
// scheduled while callers take turns (callers_in_turn.h): it alternates between
// staying urgent and yielding, and counts how many requests a second are served
// each way. No model could know how many callers there are, and what else runs.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "tracefs/base/event_fd.h"
#include "tracefs/daemon/thread_policy.h"
#include "tracefs/mount/callers_in_turn.h"

namespace tracefs {

struct ServingTrial {
  struct Served {
    uint64_t requests = 0;
    uint64_t ns = 0;

    double PerSecond() const;
  };
  Served at_once;  // by a session that is most urgent
  Served giving_way;

  // Unless it serves clearly fewer: some work it serves a sixth faster, and not
  // only while it does so, but no work was seen that it serves slower while no
  // other process wants the processors.
  bool BetterGivesWay() const {
    return giving_way.PerSecond() > at_once.PerSecond() * 0.95;
  }
  // "122000/s at once, 140000/s giving way".
  std::string Text() const;
};

// Calls `stand` with either alternately, for about 0.4 s, or until `stop` is
// set. `served`: requests so far.
ServingTrial TryServing(const std::function<void(Standing)>& stand,
                        const std::function<uint64_t()>& served,
                        const EventFd& stop);

// For a session that is most urgent at other times. Threads: one, except where
// it says any.
class Turns {
 public:
  // Setting `stop` ends anything that takes time here. Both must outlive this.
  Turns(const OwnSession& session, const EventFd& stop)
      : session_(session), stop_(stop) {}
  ~Turns() { Forget(); }
  Turns(const Turns&) = delete;
  Turns& operator=(const Turns&) = delete;

  // Makes begun() readable when callers take turns, unless a recent trial found
  // that nothing serves them better; or stops doing so.
  void Await();
  void Forget() { CallersInTurn::Queues().Await(nullptr); }
  int begun() const { return begun_.get(); }

  // They take turns: if it serves them better the session yields, and this is
  // true; otherwise it stays as it is.
  bool Begin();
  // They took turns for a while, and the session yielded: whether both still
  // hold. If not it is most urgent again.
  bool GoOn();

  // --- Threads: any.
  bool giving_way() const { return giving_way_.load(); }
  std::string Figures() const;  // of the last trial; empty: there was none

 private:
  using Clock = std::chrono::steady_clock;

  bool Holds() const;
  void Try();
  bool Stand();

  const OwnSession& session_;
  const EventFd& stop_;
  EventFd begun_;
  bool better_ = false;  // to give way, as the last trial found
  Clock::time_point tried_{};
  double expected_ = 0;  // requests a second, of a session that gives way
  CallersInTurn::Count served_;  // when last looked at
  uint64_t looked_ns_ = 0;
  std::atomic<bool> giving_way_{false};
  mutable std::mutex mu_;
  std::string figures_;  // guarded by mu_
};

}  // namespace tracefs
