#include "tracefs/mount/queue_threads.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <utility>

#include "tracefs/base/thread.h"
#include "tracefs/base/unique_fd.h"

namespace tracefs {
namespace {

// While requests come; else nothing is looked at.
constexpr std::chrono::milliseconds kBetweenLooks(100);
constexpr std::chrono::seconds kLoadInterval(5);
// Waiting and running times of threads in an interval with fewer requests say
// nothing.
constexpr uint64_t kFewestRuns = 500;
// A wait of some microseconds is none.
constexpr double kNoWaitNs = 20'000;
constexpr double kFar = 4;

std::string ReadAt(int dir, const char* path) {
  const UniqueFd fd(::openat(dir, path, O_RDONLY | O_CLOEXEC));
  std::array<char, 128> text{};
  const ssize_t n =
      fd ? ::read(fd.get(), text.data(), text.size() - 1) : ssize_t{-1};
  return {text.data(), n > 0 ? static_cast<size_t>(n) : 0};
}

// All threads of libfuse's rings so far. proc(5), schedstat.
RunDelay DelayOfRings(int proc) {
  RunDelay sum;
  const int fd =
      ::openat(proc, "self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* const tasks = fd < 0 ? nullptr : ::fdopendir(fd);
  if (tasks == nullptr) {
    if (fd >= 0) ::close(fd);
    return sum;
  }
  while (const dirent* task = ::readdir(tasks)) {
    const std::string folder = task->d_name;
    if (folder.front() == '.' ||
        !ReadAt(fd, (folder + "/comm").c_str()).starts_with("fuse-ring")) {
      continue;
    }
    uint64_t ran_ns = 0;
    uint64_t waited_ns = 0;
    uint64_t runs = 0;
    if (std::sscanf(ReadAt(fd, (folder + "/schedstat").c_str()).c_str(),
                    "%" SCNu64 " %" SCNu64 " %" SCNu64, &ran_ns, &waited_ns,
                    &runs) == 3) {
      sum.waited_ns += waited_ns;
      sum.runs += runs;
    }
  }
  ::closedir(tasks);
  return sum;
}

// Up to a moment.
struct Seen {
  ServedRequests::Count served;
  RunDelay delay;
  StandingChoice::Clock::time_point at;
};

std::string Described(ThreadPolicy policy) {
  switch (policy) {
    case ThreadPolicy::kNormal:
      return "as other processes";
    case ThreadPolicy::kNice:
      return "at nice " + std::to_string(kUrgentNice);
    case ThreadPolicy::kIdle:
      return "SCHED_IDLE in the most urgent session";
  }
  return "";
}

}  // namespace

bool LoadChange::Note(const RunDelay& interval) {
  if (interval.runs < kFewestRuns) return false;
  const double wait =
      std::max(kNoWaitNs, static_cast<double>(interval.waited_ns) /
                              static_cast<double>(interval.runs));
  if (!measured_at_) measured_at_ = wait;
  const bool far = wait > *measured_at_ * kFar || wait * kFar < *measured_at_;
  far_ = far ? far_ + 1 : 0;
  if (far_ < 2) return false;
  far_ = 0;
  measured_at_ = wait;
  return true;
}

QueueThreads::QueueThreads(std::optional<ThreadPolicy> forced, bool rings)
    : rings_(rings), forced_(forced.has_value()) {
  if (!rings_) {
    figures_ = "over /dev/fuse it makes no difference";
    return;
  }
  // If they are equal: the policy that one host was found to need most.
  if (session_.obstacle().empty()) candidates_.push_back(ThreadPolicy::kIdle);
  candidates_.push_back(ThreadPolicy::kNice);
  candidates_.push_back(ThreadPolicy::kNormal);
  if (forced) {
    policy_ = *forced;
    figures_ = "as asked for";
    if (!ApplyToProcess(*forced, session_)) {
      refusal_ = "--queue-threads " + std::string(PolicyName(*forced)) + ": " +
                 (session_.obstacle().empty() ? "needs CAP_SYS_NICE"
                                              : session_.obstacle());
    }
    return;
  }
  round_trips_ = std::make_unique<RoundTrips>();
  Measure();
  if (!ApplyToProcess(policy_, session_)) policy_ = ThreadPolicy::kNormal;
}

void QueueThreads::Measure() {
  const std::vector<PolicyTrial> trials =
      round_trips_->Try(candidates_, session_);
  policy_ = BestOf(trials).value_or(policy_);
  const std::lock_guard lock(mu_);
  ++measured_;
  figures_ = trials.empty() ? "round trips could not be measured"
                            : "round trips: " + TrialsText(trials);
  if (!session_.obstacle().empty()) figures_ += "; " + session_.obstacle();
}

std::string QueueThreads::Choice() const {
  switch (standing_.load()) {
    case QueueStanding::kAtOnce:
      break;
    case QueueStanding::kGivingWay:
      return Described(policy_) + ", which gives way while callers take turns";
    case QueueStanding::kLikeOthers:
      return Described(ThreadPolicy::kNice) + " for now";
  }
  return Described(policy_);
}

std::string QueueThreads::Why() const {
  std::string why;
  {
    const std::lock_guard lock(mu_);
    why = figures_;
    if (measured_ > 1) {
      why +=
          "; measured " + std::to_string(measured_) + " times, as load changed";
    }
    if (!served_.empty()) {
      why += "; requests while callers took turns or processors: " + served_;
    }
  }
  return why;
}

Status QueueThreads::Watch(int proc, std::function<void(ThreadPolicy)> apply) {
  if (round_trips_ == nullptr || candidates_.size() < 2 || !stop_ || !busy_) {
    return Status::Ok();
  }
  return StartThread(
      "tracefs-policy",
      [this, proc, apply = std::move(apply)] { Look(proc, apply); }, &watcher_);
}

void QueueThreads::Stop() {
  if (!watcher_.joinable()) return;
  stop_.Set();
  watcher_.join();
}

// Those of a policy that is most urgent.
void QueueThreads::Stand(QueueStanding standing, const Apply& apply) {
  const bool like_others = standing == QueueStanding::kLikeOthers;
  session_.Stand(like_others ? Standing::kLikeOthers
                 : standing == QueueStanding::kGivingWay
                     ? Standing::kGivesWay
                     : Standing::kMostUrgent);
  apply(like_others ? ThreadPolicy::kNice : ThreadPolicy::kIdle);
}

void QueueThreads::Look(int proc, const Apply& apply) {
  // It is to hear in time that others do not.
  ApplyToThread(ThreadPolicy::kNormal, 0);
  ServedRequests& queues = ServedRequests::Queues();
  bool tried = false;
  StandingChoice choice([&] {
    tried = true;
    const ServingTrial trial =
        TryServing([&](QueueStanding standing) { Stand(standing, apply); },
                   [&] { return queues.count().requests; }, stop_);
    const std::lock_guard lock(mu_);
    served_ = trial.Text();
    return trial;
  });
  const auto see = [&] {
    return Seen{queues.count(), DelayOfRings(proc),
                StandingChoice::Clock::now()};
  };
  LoadChange change;
  Seen before = see();
  Seen load_before = before;
  std::array<pollfd, 2> events = {
      {{stop_.get(), POLLIN, 0}, {busy_.get(), POLLIN, 0}}};
  const auto wait_ms = static_cast<int>(kBetweenLooks.count());
  while (true) {
    queues.Await(&busy_);
    const bool as_always = choice.standing() == QueueStanding::kAtOnce;
    ::poll(events.data(), events.size(), as_always ? -1 : 0);
    if (events[0].revents != 0 || ::poll(events.data(), 1, wait_ms) > 0) break;
    busy_.Clear();
    const Seen now = see();
    if (policy_ == ThreadPolicy::kIdle) {
      const QueueStanding standing =
          choice.After({.served = now.served - before.served,
                        .delay = now.delay.Since(before.delay),
                        .time = now.at - before.at},
                       now.at);
      if (standing_.exchange(standing) != standing || tried) {
        Stand(standing, apply);
      }
    }
    before = tried ? see() : now;
    tried = false;
    if (now.at - load_before.at < kLoadInterval) continue;
    const RunDelay interval = now.delay.Since(load_before.delay);
    load_before = now;
    if (standing_ != QueueStanding::kAtOnce || !change.Note(interval)) continue;
    Measure();
    session_.Stand(StandingOf(policy_));
    apply(policy_);
  }
  queues.Await(nullptr);
}

}  // namespace tracefs
