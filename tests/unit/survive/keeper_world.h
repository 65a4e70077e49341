// A keeper and its daemons in processes of their own, for the tests of this
// folder.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <thread>

#include "tracefs/survive/faults.h"
#include "tracefs/survive/keeper.h"

namespace tracefs::survive {

inline constexpr auto kMoment = std::chrono::milliseconds(5);

// What keeper and daemons tell the test.
struct Told {
  std::atomic<uint32_t> ended{0};
  std::atomic<uint32_t> daemons{0};
  std::atomic<pid_t> keeper{0};
  std::atomic<pid_t> daemon{0};
  std::atomic<Tracing> tracing{Tracing::kOn};
  std::atomic<uint32_t> number{0};  // as the test likes
  std::array<char, 1024> text{};

  void Say(const std::string& said) {
    text.fill('\0');
    std::copy_n(said.data(), std::min(said.size(), text.size() - 1),
                text.data());
  }
};

class KeeperWorld : public testing::Test {
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
  void TearDown() override {
    EndAll();
    ::munmap(told_, sizeof(Told));
  }
  // What is left of a test that has failed: keepers, spares and daemons, which
  // come to this process when their parents are gone.
  static void EndAll() {
    const std::string self = std::to_string(::getpid());
    do {
      std::ifstream children("/proc/self/task/" + self + "/children");
      for (pid_t child = 0; children >> child;) ::kill(child, SIGKILL);
    } while (::waitpid(-1, nullptr, 0) > 0);
  }

  // A keeper, whose daemons live like this; its status as of wait(2) when there
  // is nothing left of it.
  void Keep(const std::function<void(uint32_t number)>& life,
            bool goes_on_untraced = true) {
    Keep(life, KeeperOptions{.goes_on_untraced = goes_on_untraced, .told = {}});
  }
  void Keep(const std::function<void(uint32_t number)>& life,
            KeeperOptions options) {
    keeper_ = ::fork();
    ASSERT_GE(keeper_, 0);
    if (keeper_ != 0) return;
    told_->keeper.store(::getpid());
    options.told = [this](const std::string&) { ++told_->ended; };
    const Result<uint32_t> number = BecomeKeeper(*area_, options);
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
  // Kills the keeper. What it had made is there: a spare, and a daemon, which
  // is no child of the next.
  void KillKeeper() {
    Await([&] { return told_->daemons != 0; });
    AwaitSpare();
    ::kill(keeper_, SIGKILL);
    Status();
  }
  // One of this process that has the name; 0: there is none.
  static pid_t Child(const std::string& name) {
    return ChildOf(::getpid(), name);
  }
  static pid_t ChildOf(pid_t parent, const std::string& name) {
    const std::string number = std::to_string(parent);
    std::ifstream children("/proc/" + number + "/task/" + number + "/children");
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

  // Until no keeper, spare or daemon is left.
  void AwaitEnd() {
    Await([] { return ::waitpid(-1, nullptr, WNOHANG) < 0; });
  }
  // The keeper's spare, when there is one.
  pid_t AwaitSpare() {
    pid_t spare = 0;
    Await([&] { return (spare = ChildOf(keeper_, "tracefs-spare")) > 0; });
    return spare;
  }

  // One that has nothing to do with any of them, and a daemon that says it is
  // this one.
  static pid_t MakeBystander() {
    const pid_t made = ::fork();
    if (made == 0) {
      for (const int s : {SIGTERM, SIGUSR2}) ::signal(s, SIG_DFL);
      Stay();
    }
    return made;
  }
  int PutInPlaceOfDaemon(pid_t process) {
    return area_->header().daemon.exchange(
        static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
  }

  std::unique_ptr<Area> area_;
  Told* told_ = nullptr;
  pid_t keeper_ = -1;
};

}  // namespace tracefs::survive
