#include "tracefs/mount/standing_choice.h"

#include <poll.h>

#include <algorithm>
#include <cmath>

#include "tracefs/base/clock.h"

namespace tracefs {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Of each standing.
constexpr size_t kMoments = 6;
constexpr milliseconds kMoment(20);
constexpr milliseconds kUntilItShows(5);
// Other load changes what is best, so a trial holds for a while: longer, if the
// one before had found the same.
constexpr seconds kHoldsAtFirst(10);
constexpr seconds kHoldsAtMost(60);
constexpr seconds kHoldsAtLeast(4);
constexpr double kFarFewer = 0.7;
// Fewer in an interval say nothing about the callers.
constexpr uint64_t kFewestRequests = 8;
constexpr int kFewInARow = 3;
// A thread that gets a processor when it wants one waits for some microseconds.
constexpr uint64_t kLongWaitNs = 20'000;
// Of a trial.
constexpr uint64_t kFewestOfTrial = 60;
// Some work is served a sixth faster by a session that gives way, and not only
// while it does so; none was seen that it serves slower while no other process
// wants the processors.
constexpr double kForGivingWay = 0.95;
// The wakes of a thread that stands like others cost most.
constexpr double kForLikeOthers = 1.15;

// False if `stop` is set before the time is over.
bool Wait(milliseconds time, const EventFd& stop) {
  pollfd event = {stop.get(), POLLIN, 0};
  return ::poll(&event, 1, static_cast<int>(time.count())) <= 0;
}

bool TakeTurns(const ServedRequests::Count& served) {
  return served.requests >= kFewestRequests &&
         served.changes * 2 >= served.requests;
}

bool Waits(const RunDelay& delay) {
  return delay.runs >= kFewestRequests &&
         delay.waited_ns > delay.runs * kLongWaitNs;
}

}  // namespace

RunDelay RunDelay::Since(const RunDelay& before) const {
  return {waited_ns - std::min(waited_ns, before.waited_ns),
          runs - std::min(runs, before.runs)};
}

double ServingTrial::Served::PerSecond() const {
  return ns == 0
             ? 0
             : static_cast<double>(requests) * 1e9 / static_cast<double>(ns);
}

QueueStanding ServingTrial::Best() const {
  uint64_t all = 0;
  for (const Served& served : by_standing) all += served.requests;
  if (all < kFewestOfTrial) return QueueStanding::kLikeOthers;
  const double at_once = Of(QueueStanding::kAtOnce).PerSecond();
  const double giving_way = Of(QueueStanding::kGivingWay).PerSecond();
  const double like_others = Of(QueueStanding::kLikeOthers).PerSecond();
  if (like_others > std::max(at_once, giving_way) * kForLikeOthers) {
    return QueueStanding::kLikeOthers;
  }
  return giving_way > at_once * kForGivingWay ? QueueStanding::kGivingWay
                                              : QueueStanding::kAtOnce;
}

std::string ServingTrial::Text() const {
  const auto rate = [this](QueueStanding standing) {
    return std::to_string(std::llround(Of(standing).PerSecond()));
  };
  return rate(QueueStanding::kAtOnce) + "/s at once, " +
         rate(QueueStanding::kGivingWay) + "/s giving way, " +
         rate(QueueStanding::kLikeOthers) + "/s like others";
}

ServingTrial TryServing(const std::function<void(QueueStanding)>& stand,
                        const std::function<uint64_t()>& served,
                        const EventFd& stop) {
  ServingTrial trial;
  for (size_t i = 0; i < kMoments * kQueueStandings; ++i) {
    // a b c c b a a b c: changes in the work itself favour none.
    const size_t turn = i / kQueueStandings;
    const size_t place = i % kQueueStandings;
    const size_t which = turn % 2 == 0 ? place : kQueueStandings - 1 - place;
    stand(static_cast<QueueStanding>(which));
    if (!Wait(kUntilItShows, stop)) break;
    // This thread has to wait for a processor itself.
    const uint64_t begin_ns = MonotonicNs();
    const uint64_t before = served();
    if (!Wait(kMoment, stop)) break;
    ServingTrial::Served& moments = trial.by_standing[which];
    moments.requests += served() - before;
    moments.ns += MonotonicNs() - begin_ns;
  }
  return trial;
}

bool StandingChoice::Holds(Clock::time_point now) const {
  return !figures_.empty() && now - tried_ < holds_;
}

QueueStanding StandingChoice::Choose(Clock::time_point now) {
  if (!Holds(now)) {
    const ServingTrial trial = attempt_();
    const QueueStanding best = trial.Best();
    holds_ = best == best_ && !figures_.empty()
                 ? std::min(2 * holds_, kHoldsAtMost)
                 : kHoldsAtFirst;
    best_ = best;
    expected_ = trial.Of(best).PerSecond();
    tried_ = now;
    figures_ = trial.Text();
  }
  few_ = 0;
  return standing_ = best_;
}

QueueStanding StandingChoice::After(const Interval& interval,
                                    Clock::time_point now) {
  const ServedRequests::Count& served = interval.served;
  if (standing_ == QueueStanding::kAtOnce) {
    return TakeTurns(served) || Waits(interval.delay) ? Choose(now) : standing_;
  }
  few_ = served.requests < kFewestRequests ? few_ + 1 : 0;
  const bool in_turns = served.changes * 4 >= served.requests;
  if (few_ == kFewInARow ||
      (few_ == 0 && standing_ == QueueStanding::kGivingWay && !in_turns)) {
    return standing_ = QueueStanding::kAtOnce;
  }
  if (few_ != 0) return standing_;
  const double rate = static_cast<double>(served.requests) * 1e9 /
                      static_cast<double>(interval.time.count());
  if (rate < expected_ * kFarFewer && now - tried_ >= kHoldsAtLeast) {
    holds_ = kHoldsAtFirst;
    tried_ = {};
  }
  return Choose(now);
}

}  // namespace tracefs
