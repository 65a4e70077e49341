#include "tracefs/mount/turns.h"

#include <poll.h>

#include <cmath>
#include <utility>

#include "tracefs/base/clock.h"

namespace tracefs {
namespace {

constexpr int kMoments = 16;
constexpr std::chrono::milliseconds kMoment(20);
constexpr std::chrono::milliseconds kUntilItShows(5);
// Other load changes what is best: processes that want the processors now leave
// few to a session that yields.
constexpr std::chrono::seconds kTrialHolds(10);
constexpr double kFarFewer = 0.7;
// Fewer in an interval say nothing about the callers.
constexpr uint64_t kFewestRequests = 500;

// False if `stop` is set before the time is over.
bool Wait(std::chrono::milliseconds time, const EventFd& stop) {
  pollfd event = {stop.get(), POLLIN, 0};
  return ::poll(&event, 1, static_cast<int>(time.count())) <= 0;
}

}  // namespace

double ServingTrial::Served::PerSecond() const {
  return ns == 0
             ? 0
             : static_cast<double>(requests) * 1e9 / static_cast<double>(ns);
}

std::string ServingTrial::Text() const {
  return std::to_string(std::llround(at_once.PerSecond())) + "/s at once, " +
         std::to_string(std::llround(giving_way.PerSecond())) + "/s giving way";
}

ServingTrial TryServing(const std::function<void(Standing)>& stand,
                        const std::function<uint64_t()>& served,
                        const EventFd& stop) {
  ServingTrial trial;
  for (int i = 0; i < kMoments; ++i) {
    // a b b a a b b a: changes in the work itself favour neither.
    const bool gives_way = i % 4 == 1 || i % 4 == 2;
    stand(gives_way ? Standing::kGivesWay : Standing::kMostUrgent);
    if (!Wait(kUntilItShows, stop)) break;
    // This thread has to wait for a processor itself.
    const uint64_t begin_ns = MonotonicNs();
    const uint64_t before = served();
    if (!Wait(kMoment, stop)) break;
    ServingTrial::Served& moments =
        gives_way ? trial.giving_way : trial.at_once;
    moments.requests += served() - before;
    moments.ns += MonotonicNs() - begin_ns;
  }
  return trial;
}

bool Turns::Holds() const {
  return tried_ != Clock::time_point{} && Clock::now() - tried_ < kTrialHolds;
}

void Turns::Await() {
  if (Holds() && !better_) return;
  CallersInTurn::Queues().Await(&begun_);
}

void Turns::Try() {
  const ServingTrial trial = TryServing(
      [this](Standing standing) { session_.Stand(standing); },
      [] { return CallersInTurn::Queues().count().requests; }, stop_);
  better_ = trial.BetterGivesWay();
  expected_ = trial.giving_way.PerSecond();
  tried_ = Clock::now();
  const std::lock_guard lock(mu_);
  figures_ = trial.Text();
}

bool Turns::Stand() {
  session_.Stand(better_ ? Standing::kGivesWay : Standing::kMostUrgent);
  served_ = CallersInTurn::Queues().count();
  looked_ns_ = MonotonicNs();
  giving_way_ = better_;
  return better_;
}

bool Turns::Begin() {
  begun_.Clear();
  if (!Holds()) Try();
  return Stand();
}

bool Turns::GoOn() {
  const CallersInTurn::Count now = CallersInTurn::Queues().count();
  const CallersInTurn::Count before = std::exchange(served_, now);
  const uint64_t requests = now.requests - before.requests;
  const uint64_t changes = now.changes - before.changes;
  const uint64_t now_ns = MonotonicNs();
  const ServingTrial::Served interval = {
      requests, now_ns - std::exchange(looked_ns_, now_ns)};
  if (requests < kFewestRequests || changes * 4 < requests) {
    session_.Stand(Standing::kMostUrgent);
    giving_way_ = false;
    return false;
  }
  if (Holds() && interval.PerSecond() > expected_ * kFarFewer) return true;
  Try();
  return Stand();
}

std::string Turns::Figures() const {
  const std::lock_guard lock(mu_);
  return figures_;
}

}  // namespace tracefs
