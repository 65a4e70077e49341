#include "tracefs/daemon/round_trips.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "tracefs/base/clock.h"
#include "tracefs/base/detached_child.h"
#include "tracefs/base/join.h"
#include "tracefs/base/thread.h"
#include "tracefs/text/duration.h"

namespace tracefs {
namespace {

constexpr size_t kMostProcessors = 4;
constexpr int kRounds = 5;
constexpr size_t kTripsOfABatch = 50;
constexpr uint64_t kNsOfABatch = 1'000'000;
// A batch that has no end by then never has: its threads starve.
constexpr int kPatienceMs = 100;
constexpr id_t kNobody = 65534;

// Counts of an eventfd.
constexpr uint64_t kAsk = 1;
constexpr uint64_t kEnd = 1 << 20;

// The first processors that this process may use.
std::vector<int> Processors() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  std::vector<int> found;
  if (::sched_getaffinity(0, sizeof mask, &mask) != 0) return found;
  for (int cpu = 0; cpu < CPU_SETSIZE && found.size() < kMostProcessors;
       ++cpu) {
    if (CPU_ISSET(cpu, &mask)) found.push_back(cpu);
  }
  return found;
}

void BindTo(std::span<const int> processors) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (const int cpu : processors) CPU_SET(static_cast<size_t>(cpu), &mask);
  ::sched_setaffinity(0, sizeof mask, &mask);
}

void Put(int fd, uint64_t count) {
  static_cast<void>(!::write(fd, &count, sizeof count));
}

uint64_t Take(int fd) {
  uint64_t count = 0;
  return ::read(fd, &count, sizeof count) == sizeof count ? count : kEnd;
}

bool MakePipe(std::array<UniqueFd, 2>* ends) {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) return false;
  (*ends)[0].Reset(fds[0]);
  (*ends)[1].Reset(fds[1]);
  return true;
}

}  // namespace

// --- The asking process. It calls no more than it has to.

size_t RoundTrips::ServerHere() const {
  const int here = ::sched_getcpu();
  for (size_t i = 0; i < processors_.size(); ++i) {
    if (processors_[i] == here) return i;
  }
  return 0;
}

int64_t RoundTrips::MedianOfABatch() const {
  static std::array<int64_t, kTripsOfABatch> trips;
  size_t count = 0;
  const uint64_t end = MonotonicNs() + kNsOfABatch;
  while (count < trips.size()) {
    const uint64_t begin = MonotonicNs();
    if (begin > end && count > 0) break;
    Put(asked_[ServerHere()].get(), kAsk);
    if (Take(answered_.get()) >= kEnd) ::_exit(0);
    trips[count++] = static_cast<int64_t>(MonotonicNs() - begin);
  }
  const auto middle = trips.begin() + static_cast<ptrdiff_t>(count / 2);
  std::nth_element(trips.begin(), middle,
                   trips.begin() + static_cast<ptrdiff_t>(count));
  return *middle;
}

// What this process has open is none of its business, nor is who it is.
void RoundTrips::KeepOnlyOwnFiles() const {
  std::vector<int> own = {answered_.get(), go_[0].get(), result_[1].get()};
  for (const UniqueFd& asked : asked_) own.push_back(asked.get());
  CloseFilesFrom(0, own);
}

void RoundTrips::Call() const {
  ::setsid();
  BindTo(processors_);
  KeepOnlyOwnFiles();
  if (::geteuid() == 0 && (::setgroups(0, nullptr) != 0 ||
                           ::setresgid(kNobody, kNobody, kNobody) != 0 ||
                           ::setresuid(kNobody, kNobody, kNobody) != 0)) {
    ::_exit(1);
  }
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_NAME, "tracefs-trial");
  char byte;
  while (::read(go_[0].get(), &byte, 1) == 1) {
    const int64_t median = MedianOfABatch();
    if (::write(result_[1].get(), &median, sizeof median) != sizeof median) {
      break;
    }
  }
  ::_exit(0);
}

// --- Those who answer, for as long as this lives.

class RoundTrips::Servers {
 public:
  Servers(const RoundTrips& world, ThreadPolicy policy)
      : world_(world), left_(world.processors_.size()) {
    threads_.resize(world.processors_.size());
    for (size_t i = 0; i < threads_.size(); ++i) {
      if (!StartThread(
               "tracefs-trial", [this, i, policy] { Serve(i, policy); },
               &threads_[i])
               .ok()) {
        refused_ = true;
        left_.fetch_sub(1);
      }
    }
    for (size_t left = left_; left > 0; left = left_) left_.wait(left);
  }
  ~Servers() {
    for (const UniqueFd& asked : world_.asked_) Put(asked.get(), kEnd);
    for (std::thread& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }
  Servers(const Servers&) = delete;
  Servers& operator=(const Servers&) = delete;

  bool good() const { return !refused_; }

 private:
  void Serve(size_t i, ThreadPolicy policy) {
    BindTo({&world_.processors_[i], 1});
    if (ApplyToThread(policy, 0) != 0) refused_ = true;
    left_.fetch_sub(1);
    left_.notify_all();
    while (Take(world_.asked_[i].get()) < kEnd) {
      Put(world_.answered_.get(), kAsk);
    }
  }

  const RoundTrips& world_;
  std::atomic<size_t> left_;
  std::atomic<bool> refused_{false};
  std::vector<std::thread> threads_;
};

RoundTrips::RoundTrips() {
  if (!MakeAll()) return;
  caller_ = ::fork();
  if (caller_ == 0) Call();
  if (caller_ < 0) return;
  UniqueFd caller(
      static_cast<int>(::syscall(SYS_pidfd_open, caller_, /*flags=*/0)));
  if (caller) link_.Put(std::move(caller), POLLIN);
}

RoundTrips::~RoundTrips() {
  if (caller_ < 0) return;
  Put(answered_.get(), kEnd);  // should it still wait for that
  EndCaller();
}

// It ends by itself, unless somebody who is the same user has stopped it: then
// it stays until this process ends (PR_SET_PDEATHSIG).
void RoundTrips::EndCaller() {
  go_[1].Reset();
  const uint64_t end = MonotonicNs() + 10 * kPatienceMs * kNsPerMs;
  while (::waitpid(caller_, nullptr, WNOHANG) == 0 && MonotonicNs() < end) {
    ::usleep(500);
  }
  caller_ = -1;
}

bool RoundTrips::MakeAll() {
  processors_ = Processors();
  for (size_t i = 0; i < processors_.size(); ++i) {
    asked_.emplace_back(::eventfd(0, EFD_CLOEXEC));
    if (!asked_.back()) return false;
  }
  answered_.Reset(::eventfd(0, EFD_CLOEXEC));
  return !processors_.empty() && answered_ && MakePipe(&go_) &&
         MakePipe(&result_);
}

// None if it has no end in time.
std::optional<std::chrono::nanoseconds> RoundTrips::Batch() const {
  const char byte = 0;
  int64_t median = 0;
  pollfd ready = {result_[0].get(), POLLIN, 0};
  if (::write(go_[1].get(), &byte, 1) != 1 ||
      ::poll(&ready, 1, kPatienceMs) != 1 ||
      ::read(result_[0].get(), &median, sizeof median) != sizeof median) {
    return std::nullopt;
  }
  return std::chrono::nanoseconds(median);
}

// False if no further batch can be had.
bool RoundTrips::TryOnce(const OwnSession& session, PolicyTrial* trial) const {
  if (session.Stand(StandingOf(trial->policy)) != 0) return true;
  const Servers servers(*this, trial->policy);
  if (!servers.good()) return true;
  const std::optional<std::chrono::nanoseconds> time = Batch();
  if (!time) {
    trial->batches.clear();
    return false;
  }
  trial->batches.push_back(*time);
  return true;
}

std::vector<PolicyTrial> RoundTrips::Try(std::span<const ThreadPolicy> policies,
                                         const OwnSession& session) {
  std::vector<PolicyTrial> trials;
  if (caller_ < 0) return trials;
  for (const ThreadPolicy policy : policies) trials.push_back({policy, {}});
  bool going = true;
  for (int round = 0; round < kRounds && going; ++round) {
    for (PolicyTrial& trial : trials) {
      going = going && TryOnce(session, &trial);
    }
  }
  session.Stand(Standing::kLikeOthers);
  if (!going) {
    // What died is counted as such; another that does not answer has its end.
    if (link_.Now() != nullptr) link_.Forget();
    // It may wait for an answer of a batch that is over: it has an end.
    Put(answered_.get(), kEnd);
    EndCaller();
  }
  return trials;
}

std::optional<std::chrono::nanoseconds> PolicyTrial::round_trip() const {
  if (batches.empty()) return std::nullopt;
  auto sorted = batches;
  const auto middle =
      sorted.begin() + static_cast<ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

std::optional<ThreadPolicy> BestOf(std::span<const PolicyTrial> trials) {
  std::optional<std::chrono::nanoseconds> least;
  for (const PolicyTrial& trial : trials) {
    const auto trip = trial.round_trip();
    if (trip && (!least || *trip < *least)) least = trip;
  }
  for (const PolicyTrial& trial : trials) {
    const auto trip = trial.round_trip();
    if (trip && *trip <= *least + *least / 2) return trial.policy;
  }
  return std::nullopt;
}

std::string TrialsText(std::span<const PolicyTrial> trials) {
  std::string text;
  for (const PolicyTrial& trial : trials) {
    AppendWord(PolicyName(trial.policy), ", ", &text);
    const auto trip = trial.round_trip();
    if (!trip) {
      text += " not possible";
      continue;
    }
    text += ' ' + DurationText(static_cast<uint64_t>(trip->count()));
  }
  return text;
}

}  // namespace tracefs
