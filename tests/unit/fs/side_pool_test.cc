#include "tracefs/fs/side_pool.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <functional>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

namespace tracefs {
namespace {

using namespace std::chrono_literals;

constexpr uint32_t kUser = 1000;
constexpr uint32_t kOther = 1001;

// A request that runs what it is given.
class Task final : public SideTask {
 public:
  Task(uint64_t unique, uint32_t uid, std::function<void()> body,
       size_t bytes = 0)
      : SideTask(unique, uid, bytes), body_(std::move(body)) {}
  void Run() override { body_(); }
  bool CallerIsDying() const override { return dying.load(); }
  bool GiveUp() override {
    given_up.store(true);
    return true;
  }
  void EndUnbegun() override { unbegun.store(true); }
  void Forsake() override { forsaken.store(true); }

  std::atomic<bool> dying{false};
  std::atomic<bool> given_up{false};
  std::atomic<bool> forsaken{false};
  std::atomic<bool> unbegun{false};

 private:
  const std::function<void()> body_;
};

bool Submitted(SidePool& pool, std::shared_ptr<SideTask> task,
               ReplyThread* replies = nullptr) {
  return pool.Submit(std::move(task), replies) == SidePool::Taken::kYes;
}

std::shared_ptr<Task> MakeTask(uint32_t uid, std::function<void()> body,
                               uint64_t unique = 0) {
  return std::make_shared<Task>(unique, uid, std::move(body));
}

bool Eventually(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + 20s;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(2ms);
  }
  return true;
}

// A call that ends when it is interrupted, as an open(2) that waits for a lease
// does, or when the test ends.
class Call {
 public:
  Call() { EXPECT_EQ(::pipe(pipe_), 0); }
  ~Call() {
    LetGo();
    ::close(pipe_[0]);
    ::close(pipe_[1]);
  }
  void Wait() {
    char byte;
    error = ::read(pipe_[0], &byte, 1) < 0 ? errno : 0;
    ended = true;
  }
  void LetGo() { EXPECT_EQ(::write(pipe_[1], "x", 1), 1); }

  std::atomic<int> error{-1};
  std::atomic<bool> ended{false};

 private:
  int pipe_[2];
};

// How many threads this process may make from now on: none, or as many as it
// could before.
void LetMakeThreads(bool yes) {
  rlimit limit;
  ::getrlimit(RLIMIT_NPROC, &limit);
  limit.rlim_cur = yes ? limit.rlim_max : 0;
  ::setrlimit(RLIMIT_NPROC, &limit);
}

// Runs `body` in a child that root's freedom from limits does not hold for. 0
// if it returns true.
int StatusOfAUser(const std::function<bool()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0 && ::setresuid(65534, 65534, 65534) != 0) ::_exit(77);
    ::_exit(body() ? 0 : 1);
  }
  int status = -1;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status)
             ? WEXITSTATUS(status)
             : -1;
}

class SidePoolTest : public testing::Test {
 protected:
  void SetUp() override { shared_ = gate_.get_future().share(); }
  // One that runs until Open().
  std::shared_ptr<Task> Hanging(uint32_t uid) {
    return MakeTask(uid, [gate = shared_] { gate.wait(); });
  }
  void Open() {
    if (!open_) gate_.set_value();
    open_ = true;
  }
  void TearDown() override { Open(); }

  std::promise<void> gate_;
  std::shared_future<void> shared_;
  bool open_ = false;
};

TEST_F(SidePoolTest, RunsWhatItIsGiven) {
  SidePool pool({});
  ASSERT_TRUE(pool.Start().ok());
  std::atomic<int> done{0};
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(Submitted(pool, MakeTask(kUser, [&] { ++done; })));
  }
  EXPECT_TRUE(Eventually([&] { return done == 100; }));
  EXPECT_TRUE(pool.Stop(5s));
}

TEST_F(SidePoolTest, ManyThatWaitRunAtATime) {
  SidePool pool({.tasks = 64, .for_root = 0});
  ASSERT_TRUE(pool.Start().ok());
  for (int i = 0; i < 32; ++i) {
    ASSERT_TRUE(Submitted(pool, Hanging(kUser))) << i;
  }
  std::atomic<bool> done{false};
  ASSERT_TRUE(Submitted(pool, MakeTask(kOther, [&] { done = true; })));
  EXPECT_TRUE(Eventually([&] { return done.load(); }));
  Open();
  EXPECT_TRUE(pool.Stop(5s));
}

TEST_F(SidePoolTest, Greedy_WhoHasHisShareIsRefusedAndNobodyElse) {
  SidePool pool({.tasks = 16, .for_root = 2, .patience = 50ms});
  ASSERT_TRUE(pool.Start().ok());
  int taken = 0;
  while (Submitted(pool, Hanging(kUser))) ++taken;
  EXPECT_EQ(taken, pool.share_of_a_user());
  // He need not wait to be refused again: 200 times would be 10 s.
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 200; ++i) {
    EXPECT_FALSE(Submitted(pool, Hanging(kUser)));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
  EXPECT_EQ(pool.refused(), 201u);
  std::atomic<int> done{0};
  ASSERT_TRUE(Submitted(pool, MakeTask(kOther, [&] { ++done; })));
  ASSERT_TRUE(Submitted(pool, MakeTask(0, [&] { ++done; })));
  EXPECT_TRUE(Eventually([&] { return done == 2; }));
  Open();
  EXPECT_TRUE(pool.Stop(5s));
}

TEST_F(SidePoolTest, WhoHasHisShareWaitsForOneOfHisOwnToEnd) {
  SidePool pool({.tasks = 8, .for_root = 0, .patience = 10s});
  ASSERT_TRUE(pool.Start().ok());
  std::atomic<int> done{0};
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(Submitted(pool,
                          MakeTask(kUser,
                                   [&] {
                                     std::this_thread::sleep_for(1ms);
                                     ++done;
                                   }),
                          nullptr));
  }
  EXPECT_TRUE(Eventually([&] { return done == 100; }));
  EXPECT_EQ(pool.refused(), 0u);
  EXPECT_TRUE(pool.Stop(5s));
}

TEST_F(SidePoolTest, RefusedOneIsTakenAgainWhenOneOfHisHasEnded) {
  SidePool pool({.tasks = 4, .for_root = 0, .patience = 20ms});
  ASSERT_TRUE(pool.Start().ok());
  while (Submitted(pool, Hanging(kUser))) {
  }
  Open();
  EXPECT_TRUE(Eventually([&] { return pool.running() == 0; }));
  std::atomic<bool> done{false};
  EXPECT_TRUE(Submitted(pool, MakeTask(kUser, [&] { done = true; })));
  EXPECT_TRUE(Eventually([&] { return done.load(); }));
  EXPECT_TRUE(pool.Stop(5s));
}

TEST_F(SidePoolTest, WhatIsBeyondTheShareWaitsItsTurn) {
  SidePool pool({.tasks = 8, .for_root = 0, .aside = 1000, .patience = 50ms});
  ASSERT_TRUE(pool.Start().ok());
  std::atomic<int> done{0};
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(Submitted(pool, MakeTask(kUser, [&, gate = shared_] {
                            gate.wait();
                            ++done;
                          })));
  }
  EXPECT_EQ(pool.running(), pool.share_of_a_user());
  EXPECT_EQ(pool.aside(), 300 - pool.share_of_a_user());
  std::atomic<bool> other{false};
  ASSERT_TRUE(Submitted(pool, MakeTask(kOther, [&] { other = true; })));
  EXPECT_TRUE(Eventually([&] { return other.load(); })) << "not behind them";
  Open();
  EXPECT_TRUE(Eventually([&] { return done == 300; }));
  EXPECT_EQ(pool.refused(), 0u);
  EXPECT_EQ(pool.aside(), 0);
  EXPECT_TRUE(pool.Stop(5s));
}

TEST_F(SidePoolTest, Greedy_OfManyThatAreAsideOthersHaveTheirTurn) {
  SidePool pool({.tasks = 4, .for_root = 0, .aside = 1000, .patience = 50ms});
  ASSERT_TRUE(pool.Start().ok());
  std::atomic<int> done{0};
  std::atomic<int> before_other{-1};
  const auto slow = [&] {
    std::this_thread::sleep_for(2ms);
    ++done;
  };
  for (int i = 0; i < 400; ++i) {
    ASSERT_TRUE(Submitted(pool, MakeTask(kUser, slow)));
  }
  // More than he may run at once.
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(Submitted(pool, MakeTask(kOther, [&] {
                            std::this_thread::sleep_for(2ms);
                            before_other = done.load();
                          })));
  }
  EXPECT_TRUE(Eventually([&] { return done == 400; }));
  EXPECT_GE(before_other, 0);
  EXPECT_LT(before_other, 300);
  EXPECT_TRUE(pool.Stop(5s));
}

TEST_F(SidePoolTest, BytesAsideAreBounded) {
  SidePool pool({.tasks = 1,
                 .for_root = 0,
                 .aside = 1000,
                 .aside_bytes = 1000,
                 .patience = 20ms});
  ASSERT_TRUE(pool.Start().ok());
  ASSERT_TRUE(Submitted(pool, Hanging(kUser)));
  const auto big = [] {
    return std::make_shared<Task>(
        0, kUser, [] {}, 400);
  };
  EXPECT_TRUE(Submitted(pool, big()));
  EXPECT_TRUE(Submitted(pool, big()));
  EXPECT_EQ(pool.Submit(big(), nullptr, /*insist=*/false),
            SidePool::Taken::kFull);
  EXPECT_FALSE(Submitted(pool, big()));
  Open();
  EXPECT_TRUE(pool.Stop(5s));
}

TEST_F(SidePoolTest, Interrupt_WhatIsAsideEndsUnbegun) {
  SidePool pool({.tasks = 1, .for_root = 0, .aside = 10});
  ASSERT_TRUE(pool.Start().ok());
  ASSERT_TRUE(Submitted(pool, Hanging(kUser)));
  std::atomic<bool> ran{false};
  const auto told = MakeTask(
      kUser, [&] { ran = true; }, 7);
  const auto killed = MakeTask(
      kUser, [&] { ran = true; }, 8);
  killed->dying = true;
  ASSERT_TRUE(Submitted(pool, told));
  ASSERT_TRUE(Submitted(pool, killed));
  pool.Interrupt(7);
  EXPECT_TRUE(told->unbegun);
  EXPECT_TRUE(Eventually([&] { return killed->unbegun.load(); }));
  EXPECT_EQ(pool.aside(), 0);
  Open();
  EXPECT_TRUE(pool.Stop(5s));
  EXPECT_FALSE(ran);
}

// What a reply thread does for others while it waits for a share.
TEST_F(SidePoolTest, ReplyThreadServesOthersWhileItWaits) {
  struct Replies final : ReplyThread {
    int Run(const std::function<int()>&) override { return -ENOENT; }
    void ServeFor(std::chrono::milliseconds) override { served(); }
    void Wake() override {}
    std::function<void()> served;
  } replies;
  replies.served = [&] { Open(); };
  SidePool pool({.tasks = 2, .for_root = 0, .patience = 10s});
  ASSERT_TRUE(pool.Start().ok());
  ASSERT_TRUE(Submitted(pool, Hanging(kUser), &replies));
  EXPECT_TRUE(Submitted(pool, MakeTask(kUser, [] {}), &replies));
  EXPECT_TRUE(open_);
  EXPECT_TRUE(pool.Stop(5s));
}

// A reply thread that notices nothing by itself, as one without a processor.
class Deaf final : public ReplyThread {
 public:
  int Run(const std::function<int()>&) override { return -ENOENT; }
  void ServeFor(std::chrono::milliseconds time) override {
    std::unique_lock lock(mu_);
    called_ = true;
    woken_cv_.wait_for(lock, time, [this] { return woken_; });
    woken_ = false;
  }
  void Wake() override {
    std::lock_guard lock(mu_);
    woken_ = true;
    woken_cv_.notify_all();
  }
  bool called() const {
    std::lock_guard lock(mu_);
    return called_;
  }

 private:
  mutable std::mutex mu_;
  std::condition_variable woken_cv_;
  bool woken_ = false;
  bool called_ = false;
};

// One thread gets every share that becomes free, for more come to it than to
// the other one, which looks seldom.
TEST_F(SidePoolTest, WhoWaitsHasHisTurnHoweverManyComeAfterHim) {
  SidePool pool({.tasks = 2, .for_root = 0, .patience = 300ms});
  ASSERT_TRUE(pool.Start().ok());
  std::atomic<bool> end{false};
  std::atomic<int> refused{0};
  std::thread eager([&] {
    while (!end) {
      if (!Submitted(pool, MakeTask(kUser, [] {
                       std::this_thread::sleep_for(20ms);
                     }))) {
        ++refused;
      }
    }
  });
  EXPECT_TRUE(Eventually([&] { return pool.running() == 1; }));
  Deaf deaf;
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(Submitted(pool, MakeTask(kUser, [] {}), &deaf)) << i;
  }
  EXPECT_TRUE(deaf.called());
  end = true;
  eager.join();
  EXPECT_EQ(refused, 0);
  EXPECT_EQ(pool.refused(), 0);
  EXPECT_TRUE(pool.Stop(5s));
}

// As long as some of a user's requests end, he is slow and not stuck.
TEST_F(SidePoolTest, PatienceBeginsAnewWithEachOfHisThatEnds) {
  constexpr int kTasks = 6;
  SidePool pool({.tasks = 2, .for_root = 0, .patience = 300ms});
  ASSERT_TRUE(pool.Start().ok());
  std::vector<std::thread> callers;
  std::atomic<int> taken{0};
  for (int i = 0; i < kTasks; ++i) {
    callers.emplace_back([&] {
      taken += Submitted(
          pool, MakeTask(kUser, [] { std::this_thread::sleep_for(150ms); }));
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(taken, kTasks);
  EXPECT_TRUE(pool.Stop(5s));
}

TEST_F(SidePoolTest, Interrupt_EndsTheCallBelow) {
  SidePool pool({});
  ASSERT_TRUE(pool.Start().ok());
  Call call;
  ASSERT_TRUE(Submitted(pool,
                        MakeTask(
                            kUser, [&] { call.Wait(); }, 7),
                        nullptr));
  EXPECT_TRUE(Eventually([&] { return pool.running() == 1; }));
  pool.Interrupt(7);
  EXPECT_TRUE(Eventually([&] { return call.ended.load(); }));
  EXPECT_EQ(call.error, EINTR);
  EXPECT_TRUE(pool.Stop(5s));
}

TEST_F(SidePoolTest, Interrupt_ThatComesBeforeTheRequestEndsIt) {
  SidePool pool({});
  ASSERT_TRUE(pool.Start().ok());
  Call call;
  pool.Interrupt(7);
  ASSERT_TRUE(Submitted(pool,
                        MakeTask(
                            kUser, [&] { call.Wait(); }, 7),
                        nullptr));
  EXPECT_TRUE(Eventually([&] { return call.ended.load(); }));
  EXPECT_EQ(call.error, EINTR);
  EXPECT_TRUE(pool.Stop(5s));
}

TEST_F(SidePoolTest, Interrupt_OfAnotherEndsNothing) {
  SidePool pool({});
  ASSERT_TRUE(pool.Start().ok());
  Call call;
  ASSERT_TRUE(Submitted(pool,
                        MakeTask(
                            kUser, [&] { call.Wait(); }, 7),
                        nullptr));
  pool.Interrupt(8);
  std::this_thread::sleep_for(150ms);
  EXPECT_FALSE(call.ended);
  call.LetGo();
  EXPECT_TRUE(Eventually([&] { return call.ended.load(); }));
  EXPECT_EQ(call.error, 0);
  EXPECT_TRUE(pool.Stop(5s));
}

TEST_F(SidePoolTest, WhoseCallerDiesUntoldIsGivenUpAndInterrupted) {
  SidePool pool({});
  ASSERT_TRUE(pool.Start().ok());
  Call call;
  const auto task = std::make_shared<Task>(7, kUser, [&] { call.Wait(); });
  task->dying = true;
  ASSERT_TRUE(Submitted(pool, task));
  EXPECT_TRUE(Eventually([&] { return call.ended.load(); }));
  EXPECT_EQ(call.error, EINTR);
  EXPECT_TRUE(task->given_up);
  EXPECT_TRUE(pool.Stop(5s));
}

TEST_F(SidePoolTest, Interrupt_WhatDoesNotEndIsGivenUpWhenItsCallerDies) {
  SidePool pool({});
  ASSERT_TRUE(pool.Start().ok());
  const auto task =
      std::make_shared<Task>(7, kUser, [gate = shared_] { gate.wait(); });
  ASSERT_TRUE(Submitted(pool, task));
  pool.Interrupt(7);
  std::this_thread::sleep_for(500ms);
  EXPECT_FALSE(task->given_up) << "a signal alone does not do that";
  task->dying = true;
  EXPECT_TRUE(Eventually([&] { return task->given_up.load(); }));
  Open();
  EXPECT_TRUE(pool.Stop(5s));
}

TEST_F(SidePoolTest, Stop_InterruptsAndForsakesWhatRuns) {
  SidePool pool({});
  ASSERT_TRUE(pool.Start().ok());
  Call call;
  std::atomic<bool> began{false};
  const auto task = std::make_shared<Task>(7, kUser, [&] {
    began = true;
    call.Wait();
  });
  ASSERT_TRUE(Submitted(pool, task));
  EXPECT_TRUE(Eventually([&] { return began.load(); }));
  EXPECT_TRUE(pool.Stop(5s));
  EXPECT_TRUE(task->forsaken);
  EXPECT_FALSE(Submitted(pool, MakeTask(kUser, [] {})));
}

TEST_F(SidePoolTest, Stop_TellsOfThreadsThatHang) {
  SidePool pool({});
  ASSERT_TRUE(pool.Start().ok());
  std::atomic<bool> began{false};
  ASSERT_TRUE(Submitted(pool,
                        MakeTask(kUser,
                                 [&, gate = shared_] {
                                   began = true;
                                   gate.wait();
                                 }),
                        nullptr));
  EXPECT_TRUE(Eventually([&] { return began.load(); }));
  EXPECT_FALSE(pool.Stop(100ms));
  Open();
  EXPECT_TRUE(pool.Stop(5s));
}

TEST_F(SidePoolTest, ThreadsEndWhenThereIsNothingToDo) {
  SidePool pool({.idle = 20ms});
  ASSERT_TRUE(pool.Start().ok());
  for (int round = 0; round < 3; ++round) {
    std::atomic<int> done{0};
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE(Submitted(pool, MakeTask(kUser, [&] { ++done; })));
    }
    EXPECT_TRUE(Eventually([&] { return done == 20; }));
    std::this_thread::sleep_for(60ms);
  }
  EXPECT_TRUE(pool.Stop(5s));
}

TEST_F(SidePoolTest, WithoutMoreThreadsWhatWasTakenIsServedByTheFirst) {
  const int status = StatusOfAUser([] {
    SidePool pool({.aside = 64});
    if (!pool.Start().ok()) return false;
    LetMakeThreads(false);
    std::atomic<int> done{0};
    for (int i = 0; i < 20; ++i) {
      if (!Submitted(pool, MakeTask(kUser, [&] { ++done; }))) return false;
    }
    return Eventually([&] { return done == 20; }) && pool.Stop(5s);
  });
  if (status == 77) GTEST_SKIP() << "the user cannot be changed";
  EXPECT_EQ(status, 0);
}

TEST_F(SidePoolTest, WithoutMoreThreadsWhatNeedNotBeTakenIsNot) {
  const int status = StatusOfAUser([this] {
    SidePool pool({});
    if (!pool.Start().ok()) return false;
    LetMakeThreads(false);
    if (!Submitted(pool, Hanging(kUser))) return false;
    const auto taken = [&] {
      return pool.Submit(Hanging(kUser), nullptr, /*insist=*/false);
    };
    // Some may be before anybody knows.
    if (!Eventually([&] { return taken() == SidePool::Taken::kFull; })) {
      return false;
    }
    LetMakeThreads(true);
    const bool again =
        Eventually([&] { return taken() == SidePool::Taken::kYes; });
    Open();
    return again && pool.Stop(5s);
  });
  if (status == 77) GTEST_SKIP() << "the user cannot be changed";
  EXPECT_EQ(status, 0);
}

// It waits for a thread that hangs, and is killed, or lives to see more
// threads.
TEST_F(SidePoolTest, WithoutMoreThreadsWhatHasToBeTakenIsPutAside) {
  const int status = StatusOfAUser([this] {
    SidePool pool({.aside = 64});
    if (!pool.Start().ok()) return false;
    LetMakeThreads(false);
    if (!Submitted(pool, Hanging(kUser))) return false;
    // From this one the pool learns that it can make no more threads.
    if (!Submitted(pool, Hanging(kUser))) return false;
    std::this_thread::sleep_for(200ms);
    const auto killed = MakeTask(kUser, [] {});
    std::atomic<bool> done{false};
    const auto patient = MakeTask(kOther, [&] { done = true; });
    if (!Submitted(pool, killed) || !Submitted(pool, patient)) return false;
    killed->dying = true;
    if (!Eventually([&] { return killed->unbegun.load(); }) || done) {
      return false;
    }
    LetMakeThreads(true);
    const bool served = Eventually([&] { return done.load(); });
    Open();
    return served && pool.Stop(5s);
  });
  if (status == 77) GTEST_SKIP() << "the user cannot be changed";
  EXPECT_EQ(status, 0);
}

TEST_F(SidePoolTest, AThreadIsLeftHoweverLongThereIsNothingToDo) {
  const int status = StatusOfAUser([] {
    SidePool pool({.idle = 20ms});
    if (!pool.Start().ok()) return false;
    std::this_thread::sleep_for(200ms);
    LetMakeThreads(false);
    std::atomic<bool> done{false};
    return Submitted(pool, MakeTask(kUser, [&] { done = true; })) &&
           Eventually([&] { return done.load(); }) && pool.Stop(5s);
  });
  if (status == 77) GTEST_SKIP() << "the user cannot be changed";
  EXPECT_EQ(status, 0);
}

TEST_F(SidePoolTest, WithoutAnyThreadItDoesNotStart) {
  const int status = StatusOfAUser([] {
    LetMakeThreads(false);
    SidePool pool({});
    return pool.Start().error() == EAGAIN;
  });
  if (status == 77) GTEST_SKIP() << "the user cannot be changed";
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace tracefs
