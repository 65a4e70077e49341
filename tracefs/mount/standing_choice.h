// StandingChoice: how queue threads stand beside all else that wants a
// processor, decided by experiment with the requests themselves.
//
// SCHED_IDLE threads in the most urgent session are best for a caller that has
// a queue to itself: he stays where he is (daemon/thread_policy.h). Two things
// make others better. Callers that take turns are served several at a time by a
// session that gives way. And such a thread does not interrupt what runs when a
// request comes: where both processors are taken it waits for the next tick of
// the clock, and each fsync takes milliseconds. No model could know how many
// callers there are and what else runs: so, when either is seen, each standing
// is tried for some moments, and that which serves most requests a second stays
// until they are few.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "tracefs/base/event_fd.h"
#include "tracefs/mount/served_requests.h"

namespace tracefs {

enum class QueueStanding : uint8_t {
  kAtOnce,      // SCHED_IDLE in the most urgent session
  kGivingWay,   // SCHED_IDLE in one that yields
  kLikeOthers,  // nice, in a session like others
};
inline constexpr size_t kQueueStandings = 3;

// How long threads waited for a processor, in all, and how often they ran.
struct RunDelay {
  uint64_t waited_ns = 0;
  uint64_t runs = 0;

  // Since an earlier one; threads that have ended meanwhile count no more.
  RunDelay Since(const RunDelay& before) const;
};

struct ServingTrial {
  struct Served {
    uint64_t requests = 0;
    uint64_t ns = 0;

    double PerSecond() const;
  };
  std::array<Served, kQueueStandings> by_standing;

  const Served& Of(QueueStanding standing) const {
    return by_standing[static_cast<size_t>(standing)];
  }
  // Where hardly any were served, like others: nobody is kept waiting then.
  QueueStanding Best() const;
  // "122000/s at once, 140000/s giving way, 90000/s like others".
  std::string Text() const;
};

// Calls `stand` with each in turn, for half a second in all, or until `stop` is
// set. `served`: requests so far.
ServingTrial TryServing(const std::function<void(QueueStanding)>& stand,
                        const std::function<uint64_t()>& served,
                        const EventFd& stop);

// Begins with kAtOnce. Threads: one.
class StandingChoice {
 public:
  using Clock = std::chrono::steady_clock;
  // A trial; calls what TryServing calls.
  using Try = std::function<ServingTrial()>;

  // What was served in an interval, and how long queue threads waited for a
  // processor.
  struct Interval {
    ServedRequests::Count served;
    RunDelay delay;
    std::chrono::nanoseconds time{0};
  };

  explicit StandingChoice(Try attempt) : attempt_(std::move(attempt)) {}

  QueueStanding standing() const { return standing_; }
  // How they are to stand after such an interval. May try.
  QueueStanding After(const Interval& interval, Clock::time_point now);
  // What the last trial found; empty if there was none.
  const std::string& figures() const { return figures_; }

 private:
  bool Holds(Clock::time_point now) const;
  QueueStanding Choose(Clock::time_point now);

  const Try attempt_;
  QueueStanding standing_ = QueueStanding::kAtOnce;
  QueueStanding best_ = QueueStanding::kAtOnce;  // as the last trial found
  double expected_ = 0;                          // requests a second, of that
  Clock::time_point tried_{};
  std::chrono::seconds holds_{0};  // the last trial
  int few_ = 0;                    // intervals in a row that served few
  std::string figures_;
};

}  // namespace tracefs
