#include "tracefs/base/worker.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <string>

#include "tracefs/base/thread.h"

namespace tracefs {
namespace {

using std::chrono::hours;

// What a thread has reported so far; others wait for more.
class Count {
 public:
  void Add() {
    value_.fetch_add(1);
    value_.notify_all();
  }
  void AwaitAtLeast(int wanted) {
    for (int now = value_; now < wanted; now = value_) value_.wait(now);
  }
  int value() const { return value_; }

 private:
  std::atomic<int> value_{0};
};

TEST(Worker, HasItsNameAndNoSignals) {
  std::string name;
  sigset_t blocked;
  Worker worker;
  ASSERT_TRUE(worker
                  .Start("tracefs-test",
                         [&] {
                           std::array<char, 16> text{};
                           ::pthread_getname_np(::pthread_self(), text.data(),
                                                text.size());
                           name = text.data();
                           ::pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
                         })
                  .ok());
  worker.Join();
  EXPECT_EQ(name, "tracefs-test");
  EXPECT_EQ(::sigismember(&blocked, SIGTERM), 1);
  EXPECT_EQ(::sigismember(&blocked, SIGPIPE), 1);
}

TEST(Worker, AWakeBeforeTheWaitIsNotMissed) {
  Worker worker;
  Count turns;
  worker.Wake();  // of one that has not started: forgotten
  ASSERT_TRUE(worker
                  .Start("tracefs-test",
                         [&] {
                           worker.Wake();
                           while (worker.Wait()) turns.Add();
                         })
                  .ok());
  turns.AwaitAtLeast(1);
  worker.Wake();
  turns.AwaitAtLeast(2);
  worker.Stop();
  EXPECT_EQ(turns.value(), 2);
}

TEST(Worker, TurnsComeAfterTheirIntervalOrAWake) {
  Worker by_time;
  Count first;
  ASSERT_TRUE(by_time
                  .StartTurns("tracefs-test", std::chrono::milliseconds(1),
                              [&] { first.Add(); })
                  .ok());
  first.AwaitAtLeast(3);

  Worker by_wake;
  Count second;
  ASSERT_TRUE(
      by_wake.StartTurns("tracefs-test", hours(1), [&] { second.Add(); }).ok());
  by_wake.Wake();
  second.AwaitAtLeast(1);
}

TEST(Worker, StopEndsEveryWait) {
  for (const int how : {0, 1, 2}) {
    Worker worker;
    Count begun;
    bool result = true;
    ASSERT_TRUE(worker
                    .Start("tracefs-test",
                           [&] {
                             begun.Add();
                             result = how == 0   ? worker.Wait()
                                      : how == 1 ? worker.WaitFor(hours(1))
                                                 : worker.Pause(hours(1));
                           })
                    .ok());
    begun.AwaitAtLeast(1);
    worker.Stop();
    EXPECT_FALSE(result) << how;
    EXPECT_TRUE(worker.ending());
    EXPECT_FALSE(worker.started());
    worker.Stop();  // once more does no harm
  }
}

TEST(Worker, APauseKeepsTheWakeForTheNextWait) {
  Worker worker;
  Count woken;
  ASSERT_TRUE(worker
                  .Start("tracefs-test",
                         [&] {
                           worker.Wake();
                           if (!worker.Pause(std::chrono::milliseconds(1)) ||
                               !worker.WaitFor(hours(1))) {
                             return;
                           }
                           woken.Add();
                         })
                  .ok());
  woken.AwaitAtLeast(1);
}

TEST(Worker, StartsAgainAfterAStop) {
  Worker worker;
  Count turns;
  for (int i = 1; i <= 2; ++i) {
    ASSERT_TRUE(
        worker.StartTurns("tracefs-test", hours(1), [&] { turns.Add(); }).ok());
    worker.Wake();
    turns.AwaitAtLeast(i);
    worker.Stop();
  }
}

// In a child, as a limit of processes is that of a user: root has none.
TEST(Worker, NoThreadIsAnErrorAndNoAbort) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit none = {0, 0};
    if (::setrlimit(RLIMIT_NPROC, &none) != 0 ||
        (::geteuid() == 0 && ::setresuid(65534, 65534, 65534) != 0)) {
      ::_exit(77);
    }
    Worker worker;
    const Status status = worker.Start("tracefs-test", [] {});
    worker.Wake();
    worker.Stop();
    const bool right =
        status.error() == EAGAIN && !worker.started() &&
        status.message().find("tracefs-test") != std::string::npos;
    ::_exit(right ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "it ended by a signal: " << status;
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no limit could be set";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace tracefs
