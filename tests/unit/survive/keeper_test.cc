// What a keeper does about daemons that end, in whatever way.
#include "tracefs/survive/keeper.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "tests/unit/survive/keeper_world.h"
#include "tracefs/base/clock.h"

namespace tracefs::survive {
namespace {

class KeeperTest : public KeeperWorld {};

[[noreturn]] void Crash() { std::abort(); }

TEST_F(KeeperTest, EndsAsItsDaemonDoes) {
  Keep([&](uint32_t) { End(7); });
  const int status = Status();
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST_F(KeeperTest, AKilledDaemonIsFollowedByAnotherForAsLongAsItTakes) {
  Keep([&](uint32_t number) {
    if (number == 40) End(0);
    ::kill(::getpid(), SIGKILL);
  });
  EXPECT_EQ(Status(), 0);
  EXPECT_EQ(told_->daemons, 41U);
  EXPECT_EQ(area_->header().crashes, 0U);
  EXPECT_EQ(area_->header().tracing, Tracing::kOn);
}

TEST_F(KeeperTest, AfterTooManyCrashesTheNextDaemonEndsTheTraces) {
  Keep([&](uint32_t number) {
    Serve();
    if (number <= kMostCrashesInMinute) Crash();
    told_->tracing.store(area_->header().tracing);
    End(0);
  });
  EXPECT_EQ(Status(), 0);
  EXPECT_EQ(told_->daemons, kMostCrashesInMinute + 2);
  EXPECT_EQ(told_->tracing, Tracing::kEnds);
}

TEST_F(KeeperTest, ADaemonThatCrashesAtTheTracesIsFollowedByOneWithoutThem) {
  Keep([&](uint32_t) {
    const Tracing tracing = area_->header().tracing;
    if (tracing != Tracing::kOff) Crash();
    told_->tracing.store(tracing);
    Serve();
    End(0);
  });
  EXPECT_EQ(Status(), 0);
  EXPECT_EQ(told_->daemons, kMostInVain + 2);
  EXPECT_EQ(told_->tracing, Tracing::kOff);
}

TEST_F(KeeperTest, EndsWhereDaemonsCrashEvenWithoutTraces) {
  Keep([&](uint32_t) { Crash(); });
  const int status = Status();
  EXPECT_EQ(WEXITSTATUS(status), 3);
  EXPECT_EQ(told_->daemons, kMostInVain + 1 + kMostInVain);
  EXPECT_EQ(told_->ended, 1U);
}

TEST_F(KeeperTest, EndsWhereAMountMustNotGoOnUntraced) {
  Keep([&](uint32_t) { Crash(); }, /*goes_on_untraced=*/false);
  EXPECT_EQ(WEXITSTATUS(Status()), 3);
  EXPECT_EQ(told_->daemons, kMostInVain);
  EXPECT_EQ(told_->ended, 1U);
}

TEST_F(KeeperTest, OnlyTheRequestOfTheThreadThatCrashedIsBlamed) {
  // 0: a real one, which no process has sent.
  for (const int fault : {0, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) {
    TearDown();
    SetUp();
    Keep([&](uint32_t number) {
      if (number != 0) End(0);
      Serve();
      std::thread other([&] {
        area_->Begin(11);
        Stay();
      });
      std::this_thread::sleep_for(kMoment);
      std::thread([&] {
        area_->Begin(22);
        if (fault != 0) ::raise(fault);
        volatile uintptr_t nowhere = 8;
        *reinterpret_cast<volatile int*>(nowhere) = 1;
      }).join();
    });
    EXPECT_EQ(Status(), 0);
    EXPECT_EQ(area_->header().crashes, 1U);
    for (size_t i = 1; i < 4; ++i) {
      const Outcome& now = area_->slot(i).now;
      EXPECT_EQ(now.crashes, now.unique == 22U ? 1U : 0U)
          << now.unique << " " << fault;
    }
  }
}

TEST_F(KeeperTest, ASignalFromElsewhereBlamesAllThatWereServed) {
  Keep([&](uint32_t number) {
    if (number != 0) End(0);
    Serve();
    area_->Begin(11);
    std::thread([&] {
      area_->Begin(22);
      told_->tracing.store(Tracing::kOff);
      Stay();
    }).join();
  });
  Await([&] { return told_->tracing == Tracing::kOff; });
  ::kill(told_->daemon, SIGSEGV);
  EXPECT_EQ(Status(), 0);
  EXPECT_EQ(area_->slot(1).now.crashes, 1U);
  EXPECT_EQ(area_->slot(2).now.crashes, 1U);
}

TEST_F(KeeperTest, TheSpareTakesThePlaceOfAKeeperThatWasKilled) {
  Keep([&](uint32_t number) {
    Serve();
    if (number == 6) End(0);
    Stay();
  });
  for (uint32_t i = 0; i < 6; ++i) {
    Await([&] { return told_->daemons == i + 1; });
    // Each time the keeper first, which no later daemon has as its parent.
    pid_t keeper = keeper_;
    if (i != 0) Await([&] { return (keeper = Child("tracefs-keeper")) > 0; });
    ::kill(keeper, SIGKILL);
    EXPECT_EQ(::waitpid(keeper, nullptr, 0), keeper);
    Await([&] { return area_->header().keepers == i + 1; });
    EXPECT_EQ(told_->daemons, i + 1);
    ::kill(told_->daemon, SIGKILL);
  }
  Await([&] { return told_->daemons == 7U; });
  // And there is nobody left in the end.
  AwaitEnd();
}

TEST_F(KeeperTest, KeeperAndDaemonMayBeKilledAtOnce) {
  Keep([&](uint32_t number) {
    Serve();
    if (number != 0) End(0);
    Stay();
  });
  Await([&] { return told_->daemons == 1; });
  ::kill(keeper_, SIGKILL);
  ::kill(told_->daemon, SIGKILL);
  Status();
  Await([&] { return told_->daemons >= 2; });
  AwaitEnd();
}

TEST_F(KeeperTest, AKeeperMayBeKilledWhenItHasHalfMadeADaemon) {
  Keep([&](uint32_t number) {
    Serve();
    if (number != 0) End(0);
    Stay();
  });
  Await([&] { return told_->daemons == 1; });
  // What the kernel leaves of it: the number of a descriptor that there is not,
  // and which the next one gets.
  ::kill(keeper_, SIGSTOP);
  ::kill(told_->daemon, SIGKILL);
  Await([&] { return !IsAlive(told_->daemon); });
  area_->header().daemon.store(FreeNumberOf(keeper_));
  KillKeeper();
  Await([&] { return told_->daemons >= 2; });
  AwaitEnd();
}

TEST_F(KeeperTest, SignalsArePassedOnAndTheKeeperStays) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR2}) {
    told_->daemons.store(0);
    told_->number.store(0);
    area_->header().ended.store(0);
    area_->header().told_to_end.store(0);
    Keep([&](uint32_t) {
      Serve();
      // As it was before: the keeper blocks it.
      sigset_t all, before;
      ::sigfillset(&all);
      ::pthread_sigmask(SIG_BLOCK, &all, &before);
      if (::sigismember(&before, signal) != 0) End(1);
      told_->number.store(1);
      sigset_t wanted;
      ::sigemptyset(&wanted);
      ::sigaddset(&wanted, signal);
      ::sigaddset(&wanted, SIGALRM);
      int got = 0;
      ::alarm(10);
      ::sigwait(&wanted, &got);
      told_->number.store(static_cast<uint32_t>(got));
      End(7);
    });
    Await([&] { return told_->number == 1; });
    ::kill(keeper_, signal);
    EXPECT_EQ(WEXITSTATUS(Status()), 7);
    EXPECT_EQ(told_->number, static_cast<uint32_t>(signal));
  }
}

TEST_F(KeeperTest, WhatTellsADyingDaemonToEndReachesTheNext) {
  sigset_t wanted, before;
  ::sigemptyset(&wanted);
  ::sigaddset(&wanted, SIGTERM);
  // As daemons have it until they serve.
  ::pthread_sigmask(SIG_BLOCK, &wanted, &before);
  Keep([&](uint32_t number) {
    Serve();
    told_->number.store(1);
    if (number == 0) {
      sigset_t pending;
      ::sigemptyset(&pending);
      while (::sigismember(&pending, SIGTERM) == 0) ::sigpending(&pending);
      ::kill(::getpid(), SIGKILL);
    }
    const timespec patience = {20, 0};
    End(::sigtimedwait(&wanted, nullptr, &patience) == SIGTERM ? 7 : 1);
  });
  Await([&] { return told_->number == 1; });
  ::kill(keeper_, SIGTERM);
  EXPECT_EQ(WEXITSTATUS(Status()), 7);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// The keeper, too, is killed before the daemon has done as it was told.
TEST_F(KeeperTest, WhatTellsTheMountToEndIsKnownToTheSpare) {
  sigset_t wanted, before;
  ::sigemptyset(&wanted);
  ::sigaddset(&wanted, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &wanted, &before);
  Keep([&](uint32_t number) {
    Serve();
    if (number == 0) {
      sigset_t pending;
      ::sigemptyset(&pending);
      while (::sigismember(&pending, SIGTERM) == 0) ::sigpending(&pending);
      told_->number.store(1);
      Stay();
    }
    const timespec patience = {20, 0};
    const int got = ::sigtimedwait(&wanted, nullptr, &patience);
    told_->number.store(static_cast<uint32_t>(got));
    End(0);
  });
  Await([&] { return told_->daemons == 1; });
  AwaitSpare();
  ::kill(keeper_, SIGTERM);
  Await([&] { return told_->number == 1; });
  KillKeeper();
  Await([&] { return area_->header().keepers == 1; });
  ::kill(told_->daemon, SIGKILL);
  AwaitEnd();
  EXPECT_EQ(told_->number, static_cast<uint32_t>(SIGTERM));
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST_F(KeeperTest, ADaemonKilledWhileTheMountEndsIsFollowedUntilItHas) {
  for (const bool keeper_too : {false, true}) {
    TearDown();
    SetUp();
    Keep([&](uint32_t number) {
      Serve();
      area_->header().ended.store(Header::kEnding);
      while (keeper_too && number == 0 && area_->header().keepers == 0) {
        std::this_thread::sleep_for(kMoment);
      }
      if (number == 2) area_->header().ended.store(Header::kEnded);
      ::kill(::getpid(), SIGKILL);
    });
    if (keeper_too) {
      KillKeeper();
    } else {
      Status();
    }
    AwaitEnd();
    EXPECT_EQ(told_->daemons, 3U) << keeper_too;
  }
}

TEST_F(KeeperTest, SignalsReachADaemonThatIsNoChild) {
  Keep([&](uint32_t) {
    Serve();
    sigset_t wanted;
    ::sigemptyset(&wanted);
    ::sigaddset(&wanted, SIGTERM);
    ::sigaddset(&wanted, SIGALRM);
    ::pthread_sigmask(SIG_BLOCK, &wanted, nullptr);
    told_->number.store(1);
    int got = 0;
    ::alarm(20);
    ::sigwait(&wanted, &got);
    told_->number.store(static_cast<uint32_t>(got));
    End(0);
  });
  Await([&] { return told_->number == 1; });
  KillKeeper();
  Await([&] { return Child("tracefs-keeper") > 0; });
  ::kill(area_->header().keeper, SIGTERM);
  AwaitEnd();
  EXPECT_EQ(told_->number, static_cast<uint32_t>(SIGTERM));
}

TEST_F(KeeperTest, Malicious_ADaemonCannotHaveSignalsSentToOthers) {
  const pid_t bystander = MakeBystander();
  Keep([&](uint32_t) {
    Serve();
    while (area_->header().keepers == 0) std::this_thread::sleep_for(kMoment);
    const int self = PutInPlaceOfDaemon(bystander);
    told_->number.store(1);
    while (told_->number != 2) std::this_thread::sleep_for(kMoment);
    area_->header().ended.store(1);
    area_->header().daemon.store(self);
    ::_exit(0);
  });
  KillKeeper();
  Await([&] { return told_->number == 1; });
  const pid_t keeper = area_->header().keeper;
  ::kill(keeper, SIGTERM);
  // It has taken it when it is not pending any more.
  Await([&] {
    std::ifstream status("/proc/" + std::to_string(keeper) + "/status");
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("ShdPnd:")) {
        return std::stoull(line.substr(7), nullptr, 16) == 0;
      }
    }
    return false;
  });
  told_->number.store(2);
  EXPECT_EQ(::waitpid(keeper, nullptr, 0), keeper);
  EXPECT_EQ(::waitpid(bystander, nullptr, WNOHANG), 0) << "it was killed";
}

TEST_F(KeeperTest, Malicious_ADaemonCannotHaveTheNextOneStopped) {
  Keep([&](uint32_t number) {
    Serve();
    if (number != 0) {
      std::this_thread::sleep_for(20 * kMoment);
      End(7);
    }
    area_->header().told_to_end.store(SIGSTOP);
    ::kill(::getpid(), SIGKILL);
  });
  Await([&] { return area_->header().ended == 1; });
  if (HasFailure()) return;
  EXPECT_EQ(WEXITSTATUS(Status()), 7);
}

TEST_F(KeeperTest, Malicious_NoDaemonIsTheFirstOneOnceMore) {
  Keep([&](uint32_t number) {
    if (told_->daemons == 2) {
      told_->number.store(number);
      End(0);
    }
    area_->header().successions.store(~0U);
    ::kill(::getpid(), SIGKILL);
  });
  EXPECT_EQ(Status(), 0);
  EXPECT_NE(told_->number, 0U);
}

TEST_F(KeeperTest, ADaemonKnowsWhetherItHasAKeeper) {
  Keep([&](uint32_t) {
    Serve();
    if (!KeeperLives(*area_)) End(1);
    told_->number.store(1);
    while (KeeperLives(*area_)) std::this_thread::sleep_for(kMoment);
    End(0);
  });
  Await([&] { return told_->number == 1; });
  const pid_t spare = AwaitSpare();
  ASSERT_GT(spare, 0);
  // Both at once.
  ::kill(spare, SIGSTOP);
  ::kill(keeper_, SIGKILL);
  ::kill(spare, SIGKILL);
  // It is a zombie for as long as nobody has waited for it.
  Await([&] { return area_->header().ended == 1; });
  Status();
  AwaitEnd();
}

TEST_F(KeeperTest, ASpareThatWasKilledIsReplaced) {
  Keep([&](uint32_t) {
    Serve();
    Stay();
  });
  Await([&] { return told_->daemons == 1; });
  pid_t before = 0;
  for (int i = 0; i < 3; ++i) {
    pid_t spare = 0;
    Await([&] {
      spare = ChildOf(keeper_, "tracefs-spare");
      return spare > 0 && spare != before;
    });
    EXPECT_EQ(area_->header().keeper, keeper_);
    ::kill(before = spare, SIGKILL);
  }
  // Nothing has come of it.
  EXPECT_EQ(told_->daemons, 1U);
  EXPECT_EQ(area_->header().keepers, 0U);
  Await([&] {
    const pid_t spare = ChildOf(keeper_, "tracefs-spare");
    return spare > 0 && spare != before;
  });
  KillKeeper();
  Await([&] { return area_->header().keepers == 1; });
  EXPECT_NE(area_->header().keeper, keeper_);
  area_->header().ended.store(1);
  ::kill(told_->daemon, SIGKILL);
  AwaitEnd();
}

TEST_F(KeeperTest, ADaemonThatWasNoChildIsJudgedByWhatItNoted) {
  // How the daemon ends whose keeper is gone, and what is counted.
  struct {
    std::function<void()> end;
    uint32_t crashes, daemons;
  } const worlds[] = {{[] { ::kill(::getpid(), SIGKILL); }, 0, 2},
                      {[] { Crash(); }, 1, 2},
                      // The first one's end is the mount's.
                      {[this] {
                         area_->header().gave_up.store(1);
                         ::_exit(3);
                       },
                       0, 1},
                      {[this] { End(0); }, 0, 1}};
  for (const auto& world : worlds) {
    TearDown();
    SetUp();
    Keep([&](uint32_t number) {
      Serve();
      if (number != 0) End(0);
      while (told_->number == 0) std::this_thread::sleep_for(kMoment);
      world.end();
    });
    KillKeeper();
    Await([&] { return area_->header().keepers == 1; });
    told_->number.store(1);
    AwaitEnd();
    EXPECT_EQ(told_->daemons, world.daemons);
    EXPECT_EQ(area_->header().crashes, world.crashes);
  }
}

TEST_F(KeeperTest, TheSpareOfAMountThatNeverWasEnds) {
  area_->header().init_size.store(0);
  Keep([&](uint32_t) { Stay(); });
  Await([&] { return told_->daemons == 1; });
  const pid_t daemon = told_->daemon;
  KillKeeper();
  ::kill(daemon, SIGKILL);
  AwaitEnd();
  EXPECT_EQ(area_->header().keepers, 0U);
  EXPECT_EQ(told_->daemons, 1U);
}

TEST_F(KeeperTest, TheFirstDaemonMayEndAsItLikesALaterOneInOrder) {
  for (const uint32_t last : {0, 1}) {
    TearDown();
    SetUp();
    Keep([&](uint32_t number) {
      Serve();
      if (number == last) ::_exit(5);  // not in order
      if (number > last) End(0);
      ::kill(::getpid(), SIGKILL);
    });
    EXPECT_EQ(WEXITSTATUS(Status()), last == 0 ? 5 : 0);
    EXPECT_EQ(told_->daemons, last == 0 ? 1U : 3U);
    EXPECT_EQ(area_->header().crashes, last);
    EXPECT_EQ(area_->header().successions, 2 * last);
  }
}

TEST_F(KeeperTest, EachDeathIsTimed) {
  const uint64_t before = MonotonicNs();
  Keep([&](uint32_t number) {
    if (number == 1) End(0);
    ::kill(::getpid(), SIGKILL);
  });
  EXPECT_EQ(Status(), 0);
  EXPECT_GE(area_->header().died_ns, before);
  EXPECT_LE(area_->header().died_ns, MonotonicNs());
}

TEST_F(KeeperTest, WhereAClientWantsItShutItDoesNotGoOnUntraced) {
  area_->header().stays_shut.store(1);
  Keep([&](uint32_t) { Crash(); });
  EXPECT_EQ(WEXITSTATUS(Status()), 3);
  EXPECT_EQ(told_->daemons, kMostInVain);
}

TEST_F(KeeperTest, ADaemonThatServesMakesGoodForThoseInVain) {
  Keep([&](uint32_t number) {
    if (number == 2 * kMostInVain) End(0);
    if (number % kMostInVain == kMostInVain - 1) {
      Serve();
      ::kill(::getpid(), SIGKILL);
    }
    Crash();
  });
  EXPECT_EQ(Status(), 0);
  EXPECT_EQ(area_->header().tracing, Tracing::kOn);
}

TEST_F(KeeperTest, DaemonsHaveTheKeepersDescriptorsAndTheRecords) {
  std::array<int, 2> ends;
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  Keep([&](uint32_t number) {
    Serve();
    if (number == 0) {
      ::close(ends[1]);
      ::kill(::getpid(), SIGKILL);
    }
    // Signals do what they did before there was a keeper.
    for (const int s : {SIGTERM, SIGINT, SIGHUP, SIGUSR2, SIGCHLD}) {
      struct sigaction now;
      if (::sigaction(s, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) {
        End(2);
      }
    }
    End(::write(ends[1], "x", 1) == 1 && ::fcntl(99, F_GETFD) < 0 ? 0 : 1);
  });
  EXPECT_EQ(Status(), 0);
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST_F(KeeperTest, TheOomKillerTakesDaemonsOnly) {
  const auto score = [](pid_t process) {
    std::ifstream file("/proc/" + std::to_string(process) + "/oom_score_adj");
    int value = 9999;
    file >> value;
    return value;
  };
  const int usual = score(::getpid());
  const pid_t made = ::fork();
  if (made == 0) {
    ProtectFromOomKiller();
    if (score(::getpid()) != -1000) ::_exit(77);
    Keep([&](uint32_t) {
      Serve();
      Stay();
    });
    Await([&] { return told_->daemons == 1; });
    int bad = HasFailure() ? 1 : 0;
    if (score(keeper_) != -1000) bad |= 2;
    if (score(told_->daemon) != usual) bad |= 4;
    if (OomScore() != std::to_string(usual) + "\n") bad |= 8;
    RememberOomScore("7");
    if (OomScore() != "7") bad |= 16;
    area_->header().ended.store(1);
    ::kill(told_->daemon, SIGKILL);
    Status();
    ::_exit(bad);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(made, &status, 0), made);
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "needs CAP_SYS_RESOURCE";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace tracefs::survive
