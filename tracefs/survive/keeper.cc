#include "tracefs/survive/keeper.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <deque>
#include <span>
#include <utility>

#include "tracefs/base/clock.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/survive/descriptors.h"

namespace tracefs::survive {
namespace {

constexpr char kOomScore[] = "/proc/self/oom_score_adj";
// Whether a daemon that is no child has ended.
constexpr int kMsBetweenLooks = 50;
// One that serves nobody any more.
constexpr int kMsForDaemonToEnd = 1000;
// What has no room for another process now may have some soon.
constexpr int kMostTriesForProcess = 600;
// Before the next daemon, after one that could not go on; twice as long after
// each other one.
constexpr int kMsAfterOneInVain = 100;

std::string oom_score_before;

void WriteOomScore(const std::string& score) {
  const UniqueFd file(::open(kOomScore, O_WRONLY | O_CLOEXEC));
  if (file) (void)!::write(file.get(), score.data(), score.size());
}

// As fork(2), but both have one table of descriptors. The C library keeps the
// thread's number where the kernel is told to put it (the third and fourth
// arguments are in another order on some processors). `pidfd`: where that puts
// one before the other runs; null: nowhere.
pid_t CloneWithFiles(std::atomic<int32_t>* pidfd) {
  int* number = nullptr;
  if (::prctl(PR_GET_TID_ADDRESS, &number, 0, 0, 0) != 0) return -1;
  const int flags = pidfd != nullptr ? CLONE_PIDFD : 0;
  return static_cast<pid_t>(::syscall(
      SYS_clone,
      CLONE_FILES | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD | flags,
      nullptr, pidfd, number, number));
}

void SleepMs(int ms) { static_cast<void>(::poll(nullptr, 0, ms)); }

void CloseIn(std::atomic<int32_t>& place) {
  const int fd = place.exchange(-1);
  if (fd > STDERR_FILENO) ::close(fd);
}

// Signals that wake the keeper up, which are blocked otherwise. All but SIGCHLD
// are passed on.
class Passed {
 public:
  // Blocks them. In daemons they are what they were: Restore.
  Passed() {
    struct sigaction action {};
    action.sa_sigaction = &OnSignal;
    action.sa_flags = SA_SIGINFO;
    sigset_t set;
    ::sigemptyset(&set);
    for (size_t i = 0; i < kSignals.size(); ++i) {
      ::sigaddset(&set, kSignals[i]);
      ::sigaction(kSignals[i], &action, &actions_[i]);
    }
    ::pthread_sigmask(SIG_BLOCK, &set, &before_);
    // A keeper that was another program has left it so.
    ::sigdelset(&before_, SIGCHLD);
    awake_ = before_;
    for (const int s : kSignals) ::sigdelset(&awake_, s);
  }

  void Restore() const {
    for (size_t i = 0; i < kSignals.size(); ++i) {
      ::sigaction(kSignals[i], &actions_[i], nullptr);
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

  // Waits for one of them or until one of `others` is ready; -1: however long.
  template <typename PassOn>
  void Await(std::span<pollfd> others, int at_most_ms, PassOn&& pass_on) const {
    const timespec time = {0, at_most_ms * 1'000'000L};
    ::ppoll(others.data(), others.size(), at_most_ms < 0 ? nullptr : &time,
            &awake_);
    for (size_t i = 0; i < kSignals.size(); ++i) {
      if (got_[i] == 0) continue;
      got_[i] = 0;
      if (kSignals[i] != SIGCHLD) pass_on(kSignals[i]);
    }
  }

 private:
  static constexpr std::array kSignals = {SIGTERM, SIGINT, SIGHUP, SIGUSR2,
                                          SIGCHLD};
  static void OnSignal(int signal, siginfo_t* info, void* /*context*/) {
    // What a terminal sends to its group the daemon gets without us.
    if (signal != SIGCHLD && info->si_code > 0) return;
    for (size_t i = 0; i < kSignals.size(); ++i) {
      if (kSignals[i] == signal) got_[i] = 1;
    }
  }
  static std::array<volatile sig_atomic_t, kSignals.size()> got_;

  std::array<struct sigaction, kSignals.size()> actions_{};
  sigset_t before_{};
  sigset_t awake_{};
};
std::array<volatile sig_atomic_t, Passed::kSignals.size()> Passed::got_{};

bool EndsMount(int signal) { return signal == SIGTERM || signal == SIGINT; }

void Block(int signal) {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, signal);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

// How a daemon has ended.
struct End {
  bool exited = false;
  int status = 0;  // if it exited
  int by = 0;      // the signal, if not
};

// Whether there are too many of late.
class Crashes {
 public:
  bool TooMany(uint64_t now_ns) {
    times_.push_back(now_ns);
    while (now_ns - times_.front() > 60 * kNsPerSecond) times_.pop_front();
    return times_.size() > kMostCrashesInMinute;
  }
  void Forget() { times_.clear(); }

 private:
  std::deque<uint64_t> times_;
};

class Keeper {
 public:
  Keeper(Area& area, Descriptors& descriptors, const KeeperOptions& options)
      : header_(area.header()),
        area_(area),
        descriptors_(descriptors),
        options_(options),
        hand_over_(area, options.program) {}

  // Returns in daemons.
  Result<uint32_t> Run();

 private:
  enum class Role { kKeeper, kDaemon };

  // How many there were before the next daemon.
  uint32_t DaemonsBefore() const;
  Role MakeDaemon(uint32_t number);
  void MakeSpare();
  // Ends what another program has left: its daemon and its spare.
  void TakeOver();
  // The daemon that the keeper before had, where it was no child of that one.
  UniqueFd DaemonOf(pid_t keepers_spare) const;
  void PassOn(int signal);
  // Becomes another program.
  void GiveOver();
  // Of that process, which was the parent of this one.
  void AwaitEndOf(pid_t keeper);
  End AwaitEnd();
  End EndOfOther() const;
  // Makes another if it has ended, or could not be made; whether there is one
  // that is new.
  bool ReapSpare();
  // What the requests are that were being served when a daemon crashed.
  void CountCrash();
  // Daemons crash again and again: the next one does less, or there is none.
  void DoLess(const std::string& why);
  void EndSpare();
  // The end of the keeper: of all that it held, and of its other children.
  [[noreturn]] void EndWith(int status);

  Header& header_;
  Area& area_;
  Descriptors& descriptors_;
  const KeeperOptions& options_;
  const Passed passed_;
  HandOver hand_over_;
  uint64_t generation_ = 0;  // programs before this one
  std::array<char, 16> name_{};
  Crashes crashes_;
  uint32_t in_vain_ = 0;
  bool had_daemon_ = false;
  pid_t spare_ = -1;
  // The daemon: of this process or, -1, of the keeper before it.
  pid_t child_ = -1;
};

Result<uint32_t> Keeper::Run() {
  if (Status s = descriptors_.Keep(area_); !s.ok()) return s;
  ::prctl(PR_GET_NAME, name_.data(), 0, 0, 0);
  generation_ =
      HandOverWord::Of(area_).generation + (options_.inheritance != nullptr);
  header_.keeper.store(::getpid());
  if (options_.inheritance != nullptr) StopHurrying(*options_.inheritance);
  const pid_t self = ::getpid();
  MakeSpare();
  // A spare whose turn it is goes on from here: what was to be ended has seen
  // by itself that it is over.
  if (options_.inheritance != nullptr && ::getpid() == self) TakeOver();
  for (;;) {
    const uint32_t number = DaemonsBefore();
    // One that was made by the keeper before goes on.
    if (header_.daemon.load() < 0) {
      if (MakeDaemon(number) == Role::kDaemon) return number;
      if (child_ < 0) {
        const Status status = Status::System(errno, "another daemon");
        options_.told(status.message());
        EndWith(3);
      }
      // The one before was killed before it had done as it was told.
      const int signal = header_.told_to_end.load();
      if (EndsMount(signal)) ::kill(child_, signal);
    }
    had_daemon_ = true;
    ::prctl(PR_SET_NAME, "tracefs-keeper", 0, 0, 0);
    const End end = AwaitEnd();
    CloseIn(header_.daemon);
    child_ = -1;
    hand_over_.Forget();
    if (header_.ended.load() == Header::kEnded || (number == 0 && end.exited)) {
      // Whoever kills what has nothing to do any more does no harm.
      EndWith(end.exited          ? end.status
              : end.by == SIGKILL ? header_.end_status.load()
                                  : 3);
    }
    header_.died_ns.store(MonotonicNs());
    header_.successions.fetch_add(1);
    // Whoever kills it before it serves may do so for as long as he likes.
    in_vain_ = header_.served.load() != 0 ? 0 : in_vain_ + (end.by != SIGKILL);
    // It may have had too little of something, for a while.
    if (in_vain_ != 0 && end.exited) SleepMs(kMsAfterOneInVain << in_vain_);
    if (end.by != SIGKILL) {
      header_.crashes.fetch_add(1);
      CountCrash();
      if (crashes_.TooMany(MonotonicNs())) {
        DoLess("daemons crash again and again");
      } else if (in_vain_ >= kMostInVain ||
                 // Whatever it is in the traces that it crashes at.
                 (in_vain_ != 0 && header_.tracing.load() == Tracing::kEnds)) {
        DoLess("no daemon comes to serve any more");
      }
    }
  }
}

// Only the first one begins without one before, whatever the area says.
uint32_t Keeper::DaemonsBefore() const {
  const auto number =
      static_cast<uint32_t>(header_.successions.load() + generation_);
  return std::max(number, had_daemon_ ? 1U : 0U);
}

Keeper::Role Keeper::MakeDaemon(uint32_t number) {
  header_.served.store(0);
  header_.faulted.store(0);
  header_.gave_up.store(0);
  for (int tries = 0; (child_ = CloneWithFiles(&header_.daemon)) < 0 &&
                      tries < kMostTriesForProcess;
       ++tries) {
    SleepMs(kMsBetweenLooks);
  }
  if (child_ != 0) return Role::kKeeper;
  ::prctl(PR_SET_NAME, name_.data(), 0, 0, 0);
  passed_.Restore();
  if (!oom_score_before.empty()) WriteOomScore(oom_score_before);
  if (number == 0) return Role::kDaemon;
  if (Status s = descriptors_.Restore(area_); !s.ok()) {
    options_.told(s.message());
    header_.gave_up.store(1);
    ::_exit(3);
  }
  return Role::kDaemon;
}

void Keeper::TakeOver() {
  const Inheritance& left = *options_.inheritance;
  const HandOverWord word = HandOverWord::Of(area_);
  // From here on there is no way back. A spare that is killed with us is not in
  // the way: each knows by this word whether it is its turn.
  if (word.phase != Phase::kDrained || word.generation + 1 != generation_ ||
      !word.Change(area_, Phase::kNone, /*generations=*/1)) {
    EndSpare();
    Decline(left, &area_, "the daemon had gone on before it could");
  }
  // While the spare is there to compare it with.
  const UniqueFd daemon = DaemonOf(static_cast<pid_t>(left.Number("spare")));
  for (const char* const name : {"spare", "daemon"}) {
    const auto pid = static_cast<pid_t>(left.Number(name));
    // A child that was not waited for: nobody else has its number.
    if (pid <= 0 || ::waitpid(pid, nullptr, WNOHANG) != 0) continue;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  // One that was no child ends by itself: what it is by the area alone is only
  // waited for.
  pollfd ends = {daemon ? daemon.get() : header_.daemon.load(), POLLIN, 0};
  if (ends.fd >= 0) static_cast<void>(::poll(&ends, 1, kMsForDaemonToEnd));
  if (daemon) {
    ::syscall(SYS_pidfd_send_signal, daemon.get(), SIGKILL, nullptr, 0);
    static_cast<void>(::poll(&ends, 1, -1));
  }
  CloseIn(header_.daemon);
  // Those of this program are others, and what is in no record is closed.
  for (std::atomic<int32_t>& fd : header_.helpers) fd.store(-1);
}

// The area says which, and every daemon can write there: it is one if it has
// the descriptors that the spare has. This process's own are its own alone by
// now, and nobody exchanges what it opens.
UniqueFd Keeper::DaemonOf(pid_t keepers_spare) const {
  const pid_t named = ProcessOf(header_.daemon.load());
  if (named <= 0 || named == keepers_spare) return UniqueFd();
  UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, named, 0)));
  if (!process || !ShareDescriptors(named, keepers_spare)) return UniqueFd();
  // If it is there still, its number was no other's in between.
  pollfd ended = {process.get(), POLLIN, 0};
  return ::poll(&ended, 1, 0) == 0 ? std::move(process) : UniqueFd();
}

void Keeper::PassOn(int signal) {
  if (EndsMount(signal)) header_.told_to_end.store(signal);
  if (child_ > 0) {
    ::kill(child_, signal);
    return;
  }
  // As above; but here daemons can exchange every descriptor.
  const pid_t named = ProcessOf(header_.daemon.load());
  if (named != ::getpid() && named != spare_ &&
      ShareDescriptors(named, ::getpid())) {
    ::kill(named, signal);
  }
}

void Keeper::GiveOver() {
  const pid_t daemon = child_;
  const Status why = hand_over_.Run(spare_, daemon);
  ::prctl(PR_SET_NAME, "tracefs-keeper", 0, 0, 0);
  hand_over_.Refuse(why.message());
}

// Goes on in both: in the spare, when it has become the keeper.
void Keeper::MakeSpare() {
  while (true) {
    const pid_t keeper = ::getpid();
    spare_ = CloneWithFiles(nullptr);
    if (spare_ != 0) return;
    Block(kLeavesToSpare);
    ::prctl(PR_SET_NAME, "tracefs-spare", 0, 0, 0);
    ::prctl(PR_SET_PDEATHSIG, kLeavesToSpare, 0, 0, 0);
    spare_ = -1;
    child_ = -1;
    hand_over_.Disown();
    AwaitEndOf(keeper);
    ::prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0);
    // Another program has, or has not, taken over.
    const HandOverWord word = HandOverWord::Of(area_);
    if (word.generation != generation_) ::_exit(0);
    // The daemon goes on.
    if (word.phase != Phase::kNone && word.phase != Phase::kRefused) {
      hand_over_.Refuse("the process that was to take over has ended");
    }
    // It ended before there was a mount, or in order.
    if (header_.init_size.load() == 0) EndWith(3);
    if (header_.ended.load() == Header::kEnded) {
      EndWith(header_.end_status.load());
    }
    // Nothing is opened here: a daemon that has just begun closes what it does
    // not know.
    header_.keeper.store(::getpid());
    header_.keepers.fetch_add(1);
  }
}

void Keeper::AwaitEndOf(pid_t keeper) {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, kLeavesToSpare);
  while (::getppid() == keeper && header_.abdicated.load() != keeper) {
    siginfo_t info;
    // Anybody may send it.
    ::sigwaitinfo(&set, &info);
  }
}

bool Keeper::ReapSpare() {
  if (spare_ > 0 && ::waitpid(spare_, nullptr, WNOHANG) != spare_) {
    return false;
  }
  MakeSpare();
  return spare_ > 0;
}

End Keeper::AwaitEnd() {
  for (;;) {
    if (child_ > 0) {
      int status = 0;
      const pid_t ended = ::waitpid(child_, &status, WNOHANG);
      if (ended == child_ && WIFEXITED(status)) {
        return {.exited = true, .status = WEXITSTATUS(status)};
      }
      if (ended == child_) return {.by = WTERMSIG(status)};
    }
    // A number that a clone has left which its end had cut short is of no
    // descriptor: that has ended, too.
    pollfd daemon = {header_.daemon.load(), POLLIN, 0};
    const bool ended = ::poll(&daemon, 1, 0) > 0;
    // The daemon moves it when it begins, and its number is then another's.
    if (daemon.fd != header_.daemon.load()) continue;
    if (child_ < 0 && (ended || daemon.fd < 0)) return EndOfOther();
    if (ended) daemon.fd = -1;
    // Returns in the spare, too, once that is the keeper.
    if (ReapSpare()) continue;
    std::array<pollfd, 3> others = {daemon,
                                    pollfd{hand_over_.wakes(), POLLIN, 0},
                                    pollfd{hand_over_.trial(), POLLIN, 0}};
    // Of a child SIGCHLD tells, whatever becomes of the descriptor.
    const bool waits = child_ > 0 && spare_ > 0 && hand_over_.trial() < 0;
    passed_.Await(others, waits ? -1 : kMsBetweenLooks,
                  [this](int signal) { PassOn(signal); });
    if ((others[1].revents & POLLNVAL) != 0) hand_over_.HearNothing();
    hand_over_.Look([this] { GiveOver(); });
  }
}

// The end of a daemon that was no child of ours, as it noted it in the area.
End Keeper::EndOfOther() const {
  if (header_.ended.load() == Header::kEnded) {
    return {.exited = true, .status = header_.end_status.load()};
  }
  if (header_.gave_up.load() != 0) return {.exited = true, .status = 3};
  return {.by = header_.faulted.load() != 0 ? SIGSEGV : SIGKILL};
}

void Keeper::CountCrash() {
  const uint32_t faulted = header_.faulted.load();
  for (size_t i = 1; i < Area::kSlots; ++i) {
    if (faulted != 0 && faulted != Header::kSomeFault && faulted != i + 1) {
      continue;
    }
    Outcome& now = area_.slot(i).now;
    if (now.unique.load() != 0) now.crashes.fetch_add(1);
  }
}

void Keeper::DoLess(const std::string& why) {
  const Tracing before = header_.tracing.load();
  if (before == Tracing::kOff || !options_.goes_on_untraced ||
      header_.stays_shut.load() != 0) {
    options_.told(why);
    EndWith(3);
  }
  header_.tracing.store(before == Tracing::kOn ? Tracing::kEnds
                                               : Tracing::kOff);
  crashes_.Forget();
  in_vain_ = 0;
}

// Where none could be made its number is -1, which for kill(2) is everybody.
void Keeper::EndSpare() {
  if (spare_ <= 0) return;
  ::kill(spare_, SIGKILL);
  ::waitpid(spare_, nullptr, 0);
}

void Keeper::EndWith(int status) {
  EndSpare();
  ::close_range(STDERR_FILENO + 1, ~0U, 0);
  while (::waitpid(-1, nullptr, 0) > 0 || errno == EINTR) {
  }
  ::_exit(status);
}

}  // namespace

void ProtectFromOomKiller() {
  const UniqueFd file(::open(kOomScore, O_RDONLY | O_CLOEXEC));
  char text[16];
  const ssize_t n = file ? ::read(file.get(), text, sizeof text) : -1;
  if (n <= 0) return;
  oom_score_before.assign(text, static_cast<size_t>(n));
  WriteOomScore("-1000");
}

bool KeeperLives(const Area& area) {
  const UniqueFd keeper(static_cast<int>(
      ::syscall(SYS_pidfd_open, area.header().keeper.load(), 0)));
  pollfd ended = {keeper.get(), POLLIN, 0};
  return keeper.valid() && ::poll(&ended, 1, 0) == 0;
}

void RememberOomScore(const std::string& score) { oom_score_before = score; }
std::string OomScore() { return oom_score_before; }

Result<uint32_t> BecomeKeeper(Area& area, const KeeperOptions& options) {
  Descriptors descriptors;
  return Keeper(area, descriptors, options).Run();
}

}  // namespace tracefs::survive
