#include "tracefs/survive/keeper.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <deque>

#include "tracefs/base/clock.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/survive/descriptors.h"

namespace tracefs::survive {
namespace {

constexpr char kOomScore[] = "/proc/self/oom_score_adj";

pid_t keeper_of_daemon = 0;
std::string oom_score_before;

void WriteOomScore(const std::string& score) {
  const UniqueFd file(::open(kOomScore, O_WRONLY | O_CLOEXEC));
  if (file) (void)!::write(file.get(), score.data(), score.size());
}

// As fork(2), but both have one table of descriptors. The C library keeps the
// thread's number where the kernel is told to put it.
pid_t CloneWithFiles() {
  int* number = nullptr;
  if (::prctl(PR_GET_TID_ADDRESS, &number, 0, 0, 0) != 0) return -1;
  return static_cast<pid_t>(::syscall(
      SYS_clone,
      CLONE_FILES | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD,
      nullptr, nullptr, number, nullptr));
}

sigset_t PassedOn() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int s : {SIGTERM, SIGINT, SIGHUP, SIGUSR2, SIGCHLD}) {
    ::sigaddset(&set, s);
  }
  return set;
}

// Waits for the end of `daemon`; its status as of wait(2).
int AwaitEnd(pid_t daemon) {
  const sigset_t signals = PassedOn();
  for (;;) {
    int status = 0;
    const pid_t ended = ::waitpid(daemon, &status, WNOHANG);
    if (ended == daemon) return status;
    if (ended < 0 && errno != EINTR) return 0;
    siginfo_t info;
    const int got = ::sigwaitinfo(&signals, &info);
    // What a terminal sends to its group the daemon gets without us.
    if (got > 0 && got != SIGCHLD && info.si_code <= 0) ::kill(daemon, got);
  }
}

// Whether there are too many of late.
class Crashes {
 public:
  bool TooMany(uint64_t now_ns) {
    times_.push_back(now_ns);
    while (now_ns - times_.front() > 60 * kNsPerSecond) times_.pop_front();
    return times_.size() > kMostCrashesInMinute;
  }

 private:
  std::deque<uint64_t> times_;
};

// The end of the keeper: of all that it held, and of its other children.
[[noreturn]] void EndWith(int status) {
  ::close_range(STDERR_FILENO + 1, ~0U, 0);
  while (::waitpid(-1, nullptr, 0) > 0 || errno == EINTR) {
  }
  ::_exit(status);
}

// What the requests are that were being served when a daemon crashed.
void CountCrash(Area& area) {
  for (size_t i = 1; i < Area::kSlots; ++i) {
    Outcome& now = area.slot(i).now;
    if (now.unique.load() != 0) now.crashes.fetch_add(1);
  }
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

bool KeeperLives() {
  return keeper_of_daemon != 0 && ::getppid() == keeper_of_daemon;
}

Result<uint32_t> BecomeKeeper(
    Area& area, const std::function<void(const std::string&)>& told) {
  Descriptors descriptors;
  if (Status s = descriptors.Keep(); !s.ok()) return s;
  sigset_t before;
  const sigset_t signals = PassedOn();
  ::pthread_sigmask(SIG_BLOCK, &signals, &before);
  Header& header = area.header();
  Crashes crashes;
  const pid_t self = ::getpid();
  std::array<char, 16> name{};
  ::prctl(PR_GET_NAME, name.data(), 0, 0, 0);
  for (uint32_t in_vain = 0;;) {
    header.served.store(0);
    const uint32_t number = header.successions.load();
    const pid_t daemon = CloneWithFiles();
    if (daemon == 0) {
      keeper_of_daemon = self;
      ::prctl(PR_SET_NAME, name.data(), 0, 0, 0);
      ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
      if (!oom_score_before.empty()) WriteOomScore(oom_score_before);
      if (number != 0) {
        if (Status s = descriptors.Restore(area); !s.ok()) {
          told(s.message());
          ::_exit(3);
        }
      }
      return number;
    }
    if (daemon < 0) {
      const Status status = Status::System(errno, "another daemon");
      if (number == 0) return status;
      told(status.message());
      EndWith(3);
    }
    if (number == 0) ::prctl(PR_SET_NAME, "tracefs-keeper", 0, 0, 0);
    const int status = AwaitEnd(daemon);
    const int by = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    // Whoever kills it before it serves may do so for as long as he likes.
    in_vain = header.served.load() != 0 ? 0 : in_vain + (by != SIGKILL);
    if (in_vain >= kMostInVain) {
      told("no daemon comes to serve any more");
      EndWith(3);
    }
    if (header.ended.load() != 0 || (number == 0 && WIFEXITED(status))) {
      EndWith(WIFEXITED(status) ? WEXITSTATUS(status) : 3);
    }
    header.died_ns.store(MonotonicNs());
    header.successions.fetch_add(1);
    if (by != SIGKILL) {
      header.crashes.fetch_add(1);
      CountCrash(area);
      if (crashes.TooMany(MonotonicNs())) {
        told("daemons crash again and again");
        EndWith(3);
      }
    }
  }
}

}  // namespace tracefs::survive
