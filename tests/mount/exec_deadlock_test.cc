// A program that executes another closes its close-on-exec files in the middle
// of execve(2), under locks that much of /proc takes too. Finding out who it is
// before it is answered must not wait for it
// (tracefs/process/proc_reader.h): any user could otherwise hang the
// mount.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <string>

#include "tests/support/mount_fixture.h"
#include "tracefs/base/unique_fd.h"

namespace tracefs {
namespace {

// True if a process that does `body` ends by itself.
template <typename F>
bool Ends(F body) {
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    ::_exit(1);
  }
  const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  pollfd ended = {pidfd.get(), POLLIN, 0};
  const bool in_time = ::poll(&ended, 1, 15'000) == 1;
  if (!in_time) ::kill(child, SIGKILL);
  // A process that hangs in the mount dies with it: see TearDown.
  if (in_time) ::waitpid(child, nullptr, 0);
  return in_time;
}

class ExecDeadlockTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const auto why = TracefsMount::skip_reason()) GTEST_SKIP() << *why;
    std::ifstream offered("/sys/module/fuse/parameters/enable_uring");
    if (GetParam() == std::string("uring") && offered.get() != 'Y') {
      GTEST_SKIP() << "the kernel offers no FUSE over io_uring";
    }
    const Status started =
        mount_.Start({.visibility = "exact", .transport = GetParam()});
    ASSERT_TRUE(started.ok()) << started.message();
  }
  void TearDown() override {
    if (HasFailure()) {
      mount_.KillDaemon();
    } else if (mount_.daemon_pid() != 0) {
      EXPECT_EQ(mount_.Stop(), "");
    }
  }
  std::string Path(const char* name) const {
    return mount_.mount_dir() + "/" + name;
  }

  TracefsMount mount_;
};

INSTANTIATE_TEST_SUITE_P(, ExecDeadlockTest, testing::Values("dev", "uring"),
                         [](const auto& which) {
                           return std::string(which.param);
                         });

TEST_P(ExecDeadlockTest, ACallerThatWasForgottenMeanwhile) {
  EXPECT_TRUE(Ends([&] {
    ::open(Path("f").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644);
    ::usleep(1'200'000);  // longer than the process table remembers
    ::execl("/bin/true", "true", nullptr);
  }));
}

TEST_P(ExecDeadlockTest, ACallerNeverSeenBefore) {
  const UniqueFd inherited(
      ::open(Path("f").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644));
  ASSERT_TRUE(inherited.valid());
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(Ends([] { ::execl("/bin/true", "true", nullptr); }));
  }
}

TEST_P(ExecDeadlockTest, ACallerWhoHasChangedItsName) {
  EXPECT_TRUE(Ends([&] {
    ::open(Path("f").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644);
    ::setsid();  // reported by the kernel: makes the table look again
    ::usleep(20'000);
    ::execl("/bin/true", "true", nullptr);
  }));
}

TEST_P(ExecDeadlockTest, MappingsAndLocksThatEndWithTheOldProgram) {
  EXPECT_TRUE(Ends([&] {
    const int fd =
        ::open(Path("f").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644);
    if (::ftruncate(fd, 1 << 16) != 0) ::_exit(1);
    char* map = static_cast<char*>(
        ::mmap(nullptr, 1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    if (map == MAP_FAILED) ::_exit(1);
    for (int i = 0; i < (1 << 16); i += 4096) map[i] = 'x';
    struct flock lock = {};
    lock.l_type = F_WRLCK;
    ::fcntl(fd, F_SETLK, &lock);
    ::usleep(1'200'000);
    ::execl("/bin/true", "true", nullptr);
  }));
}

}  // namespace
}  // namespace tracefs
