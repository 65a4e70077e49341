// The watchdog, guarding a tmpfs for a "daemon" that may die (watchdog.h).
#include "tracefs/daemon/watchdog.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <thread>

#include "tests/support/helper_pids.h"
#include "tests/unit/mount/scratch_dir.h"
#include "tracefs/base/helper_link.h"
#include "tracefs/daemon/mount_info.h"

namespace tracefs {
namespace {

bool IsMounted(const std::string& path) {
  const auto place = FindMount(path);
  return place && place->mounted;
}

bool Soon(const std::function<bool()>& condition) {
  using std::chrono::steady_clock;
  const auto end = steady_clock::now() + std::chrono::seconds(20);
  while (!condition()) {
    if (steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

std::string ReadStatus(pid_t pid, const std::string& key) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(key + ":\t", 0) == 0) return line.substr(key.size() + 2);
  }
  return "";
}

class WatchdogTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!scratch_.MountTmpfs("m")) GTEST_SKIP() << "cannot mount here";
  }
  std::string point() const { return scratch_.Path("m"); }

  // Runs `body` in a child; its end is the end of the daemon.
  pid_t Daemon(const std::function<void()>& body) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      body();
      ::_exit(0);
    }
    return pid;
  }

  ScratchDir scratch_;
};

// The process that works, which a keeper has made.
pid_t Working(const Watchdog& watchdog) {
  return AwaitChildNamed(watchdog.pid(), "tracefs-watch");
}

HelperCounts CountsOf(HelperKind kind) {
  for (const HelperCounts& counts : LookAtHelpers()) {
    if (counts.kind == kind) return counts;
  }
  return {};
}

TEST_F(WatchdogTest, UnmountsOnRequest) {
  auto watchdog = Watchdog::Start();
  ASSERT_TRUE(watchdog.ok()) << watchdog.status().message();
  ASSERT_TRUE((*watchdog)->Guard(point()).ok());
  EXPECT_TRUE((*watchdog)->Unmount(/*lazy=*/false).ok());
  EXPECT_FALSE(IsMounted(point()));
  EXPECT_TRUE((*watchdog)->Unmount(/*lazy=*/false).ok());  // gone already
}

TEST_F(WatchdogTest, SaysBusyAndUnmountsLazily) {
  auto watchdog = Watchdog::Start();
  ASSERT_TRUE(watchdog.ok());
  ASSERT_TRUE((*watchdog)->Guard(point()).ok());
  const UniqueFd user(::open(point().c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(user);
  EXPECT_EQ((*watchdog)->Unmount(/*lazy=*/false).error(), EBUSY);
  EXPECT_TRUE(IsMounted(point()));
  EXPECT_TRUE((*watchdog)->Unmount(/*lazy=*/true).ok());
  EXPECT_FALSE(IsMounted(point()));
}

TEST_F(WatchdogTest, RefusesWhatIsNoMount) {
  auto watchdog = Watchdog::Start();
  ASSERT_TRUE(watchdog.ok());
  EXPECT_EQ((*watchdog)->Guard(scratch_.Folder("plain")).error(), EINVAL);
  EXPECT_EQ((*watchdog)->Guard(scratch_.Path("none")).error(), ENOENT);
  EXPECT_EQ((*watchdog)->Unmount(/*lazy=*/true).error(), EINVAL);
}

TEST_F(WatchdogTest, GuardsOneMountOnly) {
  auto watchdog = Watchdog::Start();
  ASSERT_TRUE(watchdog.ok());
  ASSERT_TRUE((*watchdog)->Guard(point()).ok());
  EXPECT_EQ((*watchdog)->Guard(point()).error(), EALREADY);
}

TEST_F(WatchdogTest, EndsWithItsOwnerAndTakesTheMountAlong) {
  pid_t child;
  {
    auto watchdog = Watchdog::Start();
    ASSERT_TRUE(watchdog.ok());
    ASSERT_TRUE((*watchdog)->Guard(point()).ok());
    child = (*watchdog)->pid();
  }
  EXPECT_FALSE(IsMounted(point()));
  EXPECT_NE(::kill(child, 0), 0);
}

TEST_F(WatchdogTest, DataLoss_KilledDaemonLeavesNoMount) {
  const pid_t daemon = Daemon([&] {
    auto watchdog = Watchdog::Start();
    if (!watchdog.ok() || !(*watchdog)->Guard(point()).ok()) ::_exit(1);
    ::kill(::getpid(), SIGKILL);
  });
  int status;
  ASSERT_EQ(::waitpid(daemon, &status, 0), daemon);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_TRUE(Soon([&] { return !IsMounted(point()); }));
}

TEST_F(WatchdogTest, AMountThatStaysShutGoesOnlyWhenAskedFor) {
  pid_t child;
  {
    auto watchdog = Watchdog::Start();
    ASSERT_TRUE(watchdog.ok());
    ASSERT_TRUE((*watchdog)->Guard(point()).ok());
    ASSERT_TRUE((*watchdog)->StayShut().ok());
    child = (*watchdog)->pid();
  }
  EXPECT_NE(::kill(child, 0), 0);
  EXPECT_TRUE(IsMounted(point()));
  auto watchdog = Watchdog::Start();
  ASSERT_TRUE(watchdog.ok());
  ASSERT_TRUE((*watchdog)->Guard(point()).ok());
  ASSERT_TRUE((*watchdog)->StayShut().ok());
  EXPECT_TRUE((*watchdog)->Unmount(/*lazy=*/false).ok());
  EXPECT_FALSE(IsMounted(point()));
}

TEST_F(WatchdogTest, DataLoss_KilledProcessGroupLeavesNoMount) {
  const pid_t daemon = Daemon([&] {
    ::setsid();
    auto watchdog = Watchdog::Start();
    if (!watchdog.ok() || !(*watchdog)->Guard(point()).ok()) ::_exit(1);
    ::kill(0, SIGKILL);
  });
  int status;
  ASSERT_EQ(::waitpid(daemon, &status, 0), daemon);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_TRUE(Soon([&] { return !IsMounted(point()); }));
}

TEST_F(WatchdogTest, OtherSignalsDoNotEndIt) {
  auto watchdog = Watchdog::Start();
  ASSERT_TRUE(watchdog.ok());
  ASSERT_TRUE((*watchdog)->Guard(point()).ok());
  for (const int number :
       {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGALRM}) {
    ASSERT_TRUE(Kill((*watchdog)->pid(), number));
    ASSERT_TRUE(Kill(Working(**watchdog), number));
  }
  EXPECT_TRUE((*watchdog)->Unmount(/*lazy=*/false).ok());
}

TEST_F(WatchdogTest, AMountThatTookItsPlaceIsLeftAlone) {
  {
    auto watchdog = Watchdog::Start();
    ASSERT_TRUE(watchdog.ok());
    ASSERT_TRUE((*watchdog)->Guard(point()).ok());
    ASSERT_EQ(::umount2(point().c_str(), 0), 0);
    ASSERT_TRUE(scratch_.MountTmpfs("m"));
    EXPECT_TRUE((*watchdog)->Unmount(/*lazy=*/true).ok());
    EXPECT_TRUE(IsMounted(point()));
  }
  EXPECT_TRUE(IsMounted(point()));
}

TEST_F(WatchdogTest, TakesBindMountsAlong) {
  ASSERT_TRUE(scratch_.MountTmpfs("copy"));
  {
    auto watchdog = Watchdog::Start();
    ASSERT_TRUE(watchdog.ok());
    ASSERT_TRUE((*watchdog)->Guard(point()).ok());
    ASSERT_EQ(::mount(point().c_str(), scratch_.Path("copy").c_str(), nullptr,
                      MS_BIND, nullptr),
              0);
  }
  EXPECT_FALSE(IsMounted(point()));
  // The tmpfs that the copy lay over is not ours.
  EXPECT_EQ(MountsOfDevice(FindMount(scratch_.Path("copy"))->device).size(),
            1U);
}

TEST_F(WatchdogTest, ARenamedFolderAboveDoesNotMatter) {
  const std::string above = scratch_.Folder("above");
  ASSERT_TRUE(scratch_.MountTmpfs("above/m"));
  {
    auto watchdog = Watchdog::Start();
    ASSERT_TRUE(watchdog.ok());
    ASSERT_TRUE((*watchdog)->Guard(above + "/m").ok());
    ASSERT_EQ(::rename(above.c_str(), scratch_.Path("moved").c_str()), 0);
    ASSERT_TRUE(IsMounted(scratch_.Path("moved/m")));
  }
  EXPECT_FALSE(IsMounted(scratch_.Path("moved/m")));
}

TEST_F(WatchdogTest, HoldsNothingOfTheDaemon) {
  const UniqueFd secret(
      ::open(scratch_.Path("trace").c_str(), O_CREAT | O_RDWR, 0600));
  ASSERT_TRUE(secret);
  auto watchdog = Watchdog::Start();
  ASSERT_TRUE(watchdog.ok());
  ASSERT_TRUE((*watchdog)->Guard(point()).ok());
  const std::string folder =
      "/proc/" + std::to_string(Working(**watchdog)) + "/fd";
  DIR* dir = ::opendir(folder.c_str());
  ASSERT_NE(dir, nullptr);
  std::multiset<std::string> held;
  while (const dirent* entry = ::readdir(dir)) {
    if (entry->d_name[0] == '.') continue;
    char target[256];
    const ssize_t n = ::readlink((folder + '/' + entry->d_name).c_str(), target,
                                 sizeof target);
    ASSERT_GT(n, 0);
    std::string text(target, static_cast<size_t>(n));
    held.insert(text.substr(0, text.find(':')));
  }
  ::closedir(dir);
  EXPECT_EQ(held, (std::multiset<std::string>{
                      "/dev/null", "/dev/null", "/dev/null", "socket", "socket",
                      "socket", "anon_inode", scratch_.path()}));
}

TEST_F(WatchdogTest, KeepsFourCapabilities) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  auto watchdog = Watchdog::Start();
  ASSERT_TRUE(watchdog.ok());
  ASSERT_TRUE((*watchdog)->Guard(point()).ok());
  for (const pid_t pid : {(*watchdog)->pid(), Working(**watchdog)}) {
    // dac_override, dac_read_search, sys_ptrace (for a looker), sys_admin
    EXPECT_EQ(ReadStatus(pid, "CapPrm"), "0000000000280006");
    EXPECT_EQ(ReadStatus(pid, "CapBnd"), "0000000000280006");
    EXPECT_EQ(ReadStatus(pid, "NoNewPrivs"), "1");
  }
}

TEST_F(WatchdogTest, AskingADeadOneFails) {
  auto watchdog = Watchdog::Start();
  ASSERT_TRUE(watchdog.ok());
  const pid_t working = Working(**watchdog);
  ASSERT_TRUE(Kill((*watchdog)->pid()));
  ASSERT_TRUE(Kill(working));
  EXPECT_TRUE(Soon([&] { return CountsOf(HelperKind::kWatch).living == 0; }));
  EXPECT_FALSE((*watchdog)->Guard(point()).ok());
  // And what to do instead is said.
  const Status unmounted = (*watchdog)->Unmount(/*lazy=*/false);
  EXPECT_EQ(unmounted.error(), EPIPE);
  EXPECT_NE(unmounted.message().find("umount(8)"), std::string::npos);
}

// --- Killed while the daemon goes on.

// And answers a question that the dead one may have taken.
TEST_F(WatchdogTest, AKilledOneIsReplaced) {
  auto watchdog = Watchdog::Start();
  ASSERT_TRUE(watchdog.ok());
  ASSERT_TRUE((*watchdog)->Guard(point()).ok());
  const HelperCounts before = CountsOf(HelperKind::kWatch);
  for (uint64_t i = 1; i <= 2; ++i) {
    const pid_t killed = Working(**watchdog);
    ASSERT_NE(killed, 0);
    ASSERT_TRUE(Kill(killed));
    // It knows what it guards.
    EXPECT_EQ((*watchdog)->Guard(point()).error(), EALREADY);
    EXPECT_NE(Working(**watchdog), killed);
    const HelperCounts now = CountsOf(HelperKind::kWatch);
    EXPECT_EQ(now.living, 1U);
    EXPECT_EQ(now.died, before.died + i);
    EXPECT_EQ(now.replaced, before.replaced + i);
  }
  EXPECT_TRUE((*watchdog)->Unmount(/*lazy=*/false).ok());
  EXPECT_FALSE(IsMounted(point()));
}

TEST_F(WatchdogTest, WhatTookThePlaceOfAKilledOneLeavesOtherMountsAlone) {
  const std::string above = scratch_.Folder("above");
  ASSERT_TRUE(scratch_.MountTmpfs("above/m"));
  {
    auto watchdog = Watchdog::Start();
    ASSERT_TRUE(watchdog.ok());
    ASSERT_TRUE((*watchdog)->Guard(above + "/m").ok());
    ASSERT_EQ(::rename(above.c_str(), scratch_.Path("moved").c_str()), 0);
    scratch_.Folder("above");
    ASSERT_TRUE(scratch_.MountTmpfs("above/m"));
    ASSERT_TRUE(Kill(Working(**watchdog)));
  }
  EXPECT_TRUE(IsMounted(above + "/m"));
  EXPECT_FALSE(IsMounted(scratch_.Path("moved/m")));
}

TEST_F(WatchdogTest, DataLoss_KilledDaemonAndWatchdogLeaveNoMount) {
  const pid_t daemon = Daemon([&] {
    auto watchdog = Watchdog::Start();
    if (!watchdog.ok() || !(*watchdog)->Guard(point()).ok()) ::_exit(1);
    if (!Kill(Working(**watchdog))) ::_exit(1);
    ::kill(::getpid(), SIGKILL);
  });
  int status;
  ASSERT_EQ(::waitpid(daemon, &status, 0), daemon);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_TRUE(Soon([&] { return !IsMounted(point()); }));
}

TEST_F(WatchdogTest, AMountStaysShutAlsoIfTheWatchdogWasKilled) {
  {
    auto watchdog = Watchdog::Start();
    ASSERT_TRUE(watchdog.ok());
    ASSERT_TRUE((*watchdog)->Guard(point()).ok());
    ASSERT_TRUE((*watchdog)->StayShut().ok());
    ASSERT_TRUE(Kill(Working(**watchdog)));
  }
  EXPECT_TRUE(IsMounted(point()));
}

}  // namespace
}  // namespace tracefs
