// What a keeper does about daemons that end, in whatever way.
#include "tracefs/survive/keeper.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <thread>

#include "tracefs/survive/faults.h"

namespace tracefs::survive {
namespace {

constexpr auto kMoment = std::chrono::milliseconds(5);

// What keeper and daemons tell the test.
struct Told {
  std::atomic<uint32_t> ended{0};
  std::atomic<uint32_t> daemons{0};
  std::atomic<pid_t> keeper{0};
  std::atomic<pid_t> daemon{0};
  std::atomic<Tracing> tracing{Tracing::kOn};
};

class KeeperTest : public testing::Test {
 protected:
  void SetUp() override {
    // Daemons whose keeper is gone become children of this process.
    ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    Result<std::unique_ptr<Area>> made = Area::Make();
    ASSERT_TRUE(made.ok()) << made.status().message();
    area_ = *std::move(made);
    area_->header().init_size.store(1);
    void* const memory = ::mmap(nullptr, sizeof(Told), PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    told_ = ::new (memory) Told;
  }
  void TearDown() override { ::munmap(told_, sizeof(Told)); }

  // A keeper, whose daemons live like this; its status as of wait(2) when there
  // is nothing left of it.
  void Keep(const std::function<void(uint32_t number)>& life,
            bool goes_on_untraced = true) {
    keeper_ = ::fork();
    ASSERT_GE(keeper_, 0);
    if (keeper_ != 0) return;
    told_->keeper.store(::getpid());
    const Result<uint32_t> number = BecomeKeeper(
        *area_, {.goes_on_untraced = goes_on_untraced,
                 .told = [this](const std::string&) { ++told_->ended; }});
    if (!number.ok()) ::_exit(99);
    told_->daemon.store(::getpid());
    ++told_->daemons;
    area_->Use();
    NoteFaults();
    life(*number);
    ::_exit(0);
  }
  int Status() {
    int status = 0;
    EXPECT_EQ(::waitpid(keeper_, &status, 0), keeper_);
    return status;
  }
  // One of this process that has the name; 0: there is none.
  static pid_t Child(const std::string& name) {
    const std::string self = std::to_string(::getpid());
    std::ifstream children("/proc/self/task/" + self + "/children");
    for (pid_t child = 0; children >> child;) {
      std::ifstream comm("/proc/" + std::to_string(child) + "/comm");
      std::string its_name;
      std::getline(comm, its_name);
      if (its_name == name) return child;
    }
    return 0;
  }
  static bool IsAlive(pid_t process) {
    std::ifstream stat("/proc/" + std::to_string(process) + "/stat");
    std::string number, name, state;
    stat >> number >> name >> state;
    return !state.empty() && state != "Z";
  }
  // The lowest descriptor that it does not have.
  static int FreeNumberOf(pid_t process) {
    int number = 3;
    while (std::filesystem::is_symlink("/proc/" + std::to_string(process) +
                                       "/fd/" + std::to_string(number))) {
      ++number;
    }
    return number;
  }
  void Serve() { area_->header().served.store(1); }
  static void Stay() {
    for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
  }
  // In order.
  [[noreturn]] void End(int status) {
    area_->header().ended.store(1);
    ::_exit(status);
  }
  void Await(const std::function<bool()>& what) {
    for (int i = 0; i < 2000 && !what(); ++i) {
      std::this_thread::sleep_for(kMoment);
    }
    EXPECT_TRUE(what());
  }

  std::unique_ptr<Area> area_;
  Told* told_ = nullptr;
  pid_t keeper_ = -1;
};

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
      // A real one, which no other process has sent.
      volatile uintptr_t nowhere = 8;
      *reinterpret_cast<volatile int*>(nowhere) = 1;
    }).join();
  });
  EXPECT_EQ(Status(), 0);
  EXPECT_EQ(area_->header().crashes, 1U);
  for (size_t i = 1; i < 4; ++i) {
    const Outcome& now = area_->slot(i).now;
    EXPECT_EQ(now.crashes, now.unique == 22U ? 1U : 0U) << now.unique;
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
  Await([&] { return ::waitpid(-1, nullptr, WNOHANG) < 0; });
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
  Await([&] { return ::waitpid(-1, nullptr, WNOHANG) < 0; });
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
  ::kill(keeper_, SIGKILL);
  Status();
  Await([&] { return told_->daemons >= 2; });
  Await([&] { return ::waitpid(-1, nullptr, WNOHANG) < 0; });
}

}  // namespace
}  // namespace tracefs::survive
