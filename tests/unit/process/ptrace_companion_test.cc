// Tasks whose makers end before they could tell of them: each is recorded, and
// none stays stopped.
#include "tracefs/process/ptrace_companion.h"

#include <gtest/gtest.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace tracefs {
namespace {

using Kind = ProcessRecord::Kind;

// Waits until that task, which calls itself "maker" before it makes anything,
// stands still in the event of a fork that nobody has taken yet. For a child of
// a process with one thread.
void AwaitItsStop(pid_t tid) {
  char name[64];
  std::snprintf(name, sizeof name, "/proc/%d/stat", tid);
  for (;; ::usleep(1000)) {
    FILE* const file = std::fopen(name, "r");
    if (file == nullptr) return;
    char line[256] = {};
    static_cast<void>(!std::fgets(line, sizeof line, file));
    std::fclose(file);
    if (std::strstr(line, "(maker) t") != nullptr) return;
  }
}

class PtraceCompanionTest : public testing::Test {
 protected:
  // Of all records: what was made by whom, and what ended.
  struct Said {
    std::vector<ProcessRecord> forks;
    std::map<uint32_t, uint32_t> exits;  // by pid: codes
  };

  PtraceCompanionTest() : companion_(Telling(&said_)) {}

  static PtraceCompanion::Options Telling(Said* said) {
    PtraceCompanion::Options options;
    options.take = [said](ProcessRecord& record) {
      if (record.kind == Kind::kFork) said->forks.push_back(record);
      if (record.kind == Kind::kExit && !record.is_thread() &&
          record.exit_code) {
        said->exits[record.process.pid] = *record.exit_code;
      }
    };
    return options;
  }

  // Runs `work` in a child that is followed.
  void Follow(const std::function<void()>& work) {
    int ready[2];
    ASSERT_EQ(::pipe(ready), 0);
    child_ = ::fork();
    if (child_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      char go;
      static_cast<void>(!::read(ready[0], &go, 1));
      work();
      ::_exit(9);
    }
    const Status seized = companion_.Seize(child_);
    if (!seized.ok()) GTEST_SKIP() << seized.message();
    ASSERT_EQ(::write(ready[1], "", 1), 1);
    ::close(ready[0]);
    ::close(ready[1]);
  }

  // Takes what happens until all have ended, but no fork that a task of the
  // name "maker" tells of. False if they do not end.
  bool TakeAll() {
    const auto until =
        std::chrono::steady_clock::now() + std::chrono::seconds(20);
    siginfo_t any;
    while (::waitid(P_ALL, 0, &any,
                    WEXITED | WSTOPPED | __WALL | WNOHANG | WNOWAIT) == 0) {
      if (std::chrono::steady_clock::now() > until) {
        ::kill(child_, SIGKILL);
        companion_.LetAllGo();
        return false;
      }
      bool took = false;
      constexpr pid_t kMany = 512;  // numbers after the first one's
      for (pid_t tid = child_; tid < child_ + kMany; ++tid) took |= Take(tid);
      if (!took) ::usleep(1000);
    }
    return true;
  }

  const ProcessRecord* ForkOf(const std::function<bool(uint32_t code)>& is) {
    for (const ProcessRecord& fork : said_.forks) {
      const auto end = said_.exits.find(fork.child.pid);
      if (end != said_.exits.end() && is(end->second)) return &fork;
    }
    return nullptr;
  }

  Said said_;
  PtraceCompanion companion_;
  pid_t child_ = -1;

 private:
  bool Take(pid_t tid) {
    siginfo_t next = {};
    const auto id = static_cast<id_t>(tid);
    if (::waitid(P_PID, id, &next,
                 WEXITED | WSTOPPED | __WALL | WNOHANG | WNOWAIT) != 0 ||
        next.si_pid != tid) {
      return false;
    }
    const int event = next.si_code == CLD_TRAPPED ? next.si_status >> 8 : 0;
    const bool fork = event == PTRACE_EVENT_FORK ||
                      event == PTRACE_EVENT_VFORK ||
                      event == PTRACE_EVENT_CLONE;
    if (fork && NameOf(tid) == "maker") return false;
    int status = 0;
    if (::waitpid(tid, &status, __WALL | WNOHANG) != tid) return false;
    return companion_.Handle(tid, status);
  }

  static std::string NameOf(pid_t tid) {
    std::ifstream in("/proc/" + std::to_string(tid) + "/comm");
    std::string name;
    std::getline(in, name);
    return name;
  }
};

TEST_F(PtraceCompanionTest, AThreadsForkThatAnExitOfAllCutsShortIsRecorded) {
  Follow([] {
    static std::atomic<pid_t> maker = 0;
    std::thread thread([] {
      ::prctl(PR_SET_NAME, "maker");
      maker = static_cast<pid_t>(::syscall(SYS_gettid));
      if (::syscall(SYS_fork) == 0) ::_exit(3);
      ::pause();
    });
    while (maker == 0) ::usleep(1000);
    AwaitItsStop(maker);
    ::_exit(7);
  });
  if (IsSkipped()) return;
  EXPECT_TRUE(TakeAll());
  const ProcessRecord* const fork =
      ForkOf([](uint32_t code) { return code == 3; });
  ASSERT_NE(fork, nullptr);
  EXPECT_EQ(fork->process.pid, static_cast<uint32_t>(child_));
  EXPECT_NE(fork->tid, static_cast<uint32_t>(child_));
}

TEST_F(PtraceCompanionTest, ASiblingOfAKilledMakerIsRecordedAndGoesOn) {
  Follow([] {
    const pid_t maker = ::fork();
    if (maker == 0) {
      ::prctl(PR_SET_NAME, "maker");
      if (::syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0) == 0) {
        ::_exit(3);
      }
      ::pause();
    }
    AwaitItsStop(maker);
    ::kill(maker, SIGKILL);
    // Its child is ours.
    while (::wait(nullptr) > 0) {
    }
    ::_exit(7);
  });
  if (IsSkipped()) return;
  EXPECT_TRUE(TakeAll());
  const ProcessRecord* const fork =
      ForkOf([](uint32_t code) { return code == 3; });
  ASSERT_NE(fork, nullptr);
  EXPECT_NE(fork->process.pid, static_cast<uint32_t>(child_));
}

// A second SIGKILL ends the stop in which its children would be asked for, and
// they get a parent that is known and has not made them: one that waits, or one
// that runs all the time and makes nothing.
TEST_F(PtraceCompanionTest, AChildOfAMakerThatIsKilledTwiceGoesOn) {
  for (const int how : {0, WNOHANG}) {
    Follow([how] {
      ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
      const pid_t maker = ::fork();
      if (maker == 0) {
        ::prctl(PR_SET_NAME, "maker");
        if (::syscall(SYS_fork) == 0) ::_exit(3);
        ::pause();
      }
      AwaitItsStop(maker);
      siginfo_t end = {};
      while (end.si_pid != maker) {
        ::kill(maker, SIGKILL);
        ::waitid(P_PID, static_cast<id_t>(maker), &end,
                 WEXITED | WNOHANG | WNOWAIT);
      }
      while (::waitpid(-1, nullptr, how) >= 0) {
      }
      ::_exit(7);
    });
    if (IsSkipped()) return;
    EXPECT_TRUE(TakeAll());
    const auto end = said_.exits.find(static_cast<uint32_t>(child_));
    ASSERT_NE(end, said_.exits.end());
    EXPECT_EQ(end->second, 7u);
  }
}

}  // namespace
}  // namespace tracefs
