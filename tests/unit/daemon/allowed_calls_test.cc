// All system calls that a daemon in its sandbox may make: every other number is
// refused. Found by making them all, each with arguments that are good for
// nothing. A call that is new in this list is a decision, to be explained in
// seccomp_calls.h.
#include <gtest/gtest.h>

#include "tracefs/base/sanitizers.h"

#if TRACEFS_HAVE_SECCOMP && defined(__x86_64__)

#include <linux/capability.h>
#include <seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <set>
#include <sstream>

#include "tests/unit/daemon/in_child.h"
#include "tracefs/daemon/capabilities.h"
#include "tracefs/daemon/sandbox.h"

namespace tracefs {
namespace {

// Newer numbers are nobody's yet, or 500 behind.
constexpr int kNumbers = 480;

// Those with conditions are in injected_calls_test.cc; here they are refused,
// for their arguments are wrong.
constexpr const char* kMount = R"(
  accept4 brk cachestat capget capset clock_getres clock_gettime clock_nanosleep
  clone3 close close_range copy_file_range dup dup2 dup3 epoll_create1 epoll_ctl
  epoll_pwait epoll_wait eventfd2 exit exit_group faccessat faccessat2 fadvise64
  fallocate fchmod fchmodat fchmodat2 fchown fchownat fdatasync fgetxattr
  file_getattr file_setattr flistxattr flock fremovexattr fsetxattr fstat fstatfs
  fsync ftruncate futex futex_waitv get_robust_list getcpu getdents64 getegid
  geteuid getgid getpeername getpgid getpid getppid getpriority getrandom
  getrlimit getrusage getsid getsockname getsockopt gettid gettimeofday getuid
  getxattr getxattrat linkat listxattr listxattrat lseek madvise membarrier
  mkdirat mknodat mlock mlock2 mremap munlock munmap name_to_handle_at nanosleep
  newfstatat open_by_handle_at openat openat2 pidfd_open pipe2 poll ppoll pread64
  preadv preadv2 pselect6 pwrite64 pwritev pwritev2 read readlinkat readv recvfrom
  recvmsg removexattr removexattrat renameat renameat2 restart_syscall rseq
  rt_sigaction rt_sigpending rt_sigprocmask rt_sigreturn rt_sigtimedwait
  sched_getaffinity sched_yield select sendmsg sendto
  set_robust_list setfsgid setfsuid setgroups setsockopt setxattr setxattrat
  shutdown sigaltstack statfs statx symlinkat sync_file_range syncfs sysinfo time
  timerfd_create timerfd_gettime timerfd_settime times truncate umask uname
  unlinkat utimensat wait4 waitid write writev)";

constexpr const char* kUring =
    "get_mempolicy io_uring_enter io_uring_register io_uring_setup mbind "
    "set_mempolicy";  // rings until they are there (rings_test.cc)

std::set<std::string> Words(const std::string& text) {
  std::istringstream in(text);
  std::set<std::string> words;
  for (std::string word; in >> word;) words.insert(word);
  return words;
}

std::string NameOf(int number) {
  // What libseccomp does not know yet.
  static const std::pair<int, const char*> kNew[] = {
      {449, "futex_waitv"},   {451, "cachestat"},    {452, "fchmodat2"},
      {463, "setxattrat"},    {464, "getxattrat"},   {465, "listxattrat"},
      {466, "removexattrat"}, {468, "file_getattr"}, {469, "file_setattr"}};
  for (const auto& [known, name] : kNew) {
    if (known == number) return name;
  }
  char* const name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, number);
  const std::string text = name != nullptr ? name : std::to_string(number);
  std::free(name);
  return text;
}

// Those that are not refused.
std::set<std::string> Allowed(const SandboxOptions& options) {
  std::set<std::string> allowed;
  // They would end the process, or its thread.
  const std::set<int> last = {SYS_exit, SYS_exit_group, SYS_rt_sigreturn};
  for (const int number : last) allowed.insert(NameOf(number));
  // uretprobe and uprobe: no filter sees them, and whoever was not sent there
  // by the kernel gets SIGILL.
  const std::set<int> probes = {335, 336};
  const std::string found = InChild([&]() -> std::string {
    auto sandbox = Sandbox::Enter(options);
    if (!sandbox.ok()) return sandbox.status().message();
    ::close(STDERR_FILENO);
    std::string text;
    for (int number = 0; number < kNumbers; ++number) {
      if (last.count(number) != 0 || probes.count(number) != 0) continue;
      constexpr long kBad = -1;
      const long result = ::syscall(number, kBad, kBad, kBad, kBad, kBad, kBad);
      if (result != -1 || errno != EPERM) {
        text += std::to_string(number) + ' ';
      }
    }
    return text;
  });
  std::istringstream in(found);
  for (int number; in >> number;) allowed.insert(NameOf(number));
  EXPECT_TRUE(in.eof()) << found;
  return allowed;
}

std::string Difference(const std::set<std::string>& a,
                       const std::set<std::string>& b) {
  std::string text;
  for (const std::string& one : a) {
    if (b.count(one) == 0) text += one + ' ';
  }
  return text;
}

void ExpectAllowed(const SandboxOptions& options, const std::string& wanted) {
  const std::set<std::string> found = Allowed(options);
  const std::set<std::string> words = Words(wanted);
  EXPECT_EQ(Difference(found, words), "") << "allowed, and not listed here";
  EXPECT_EQ(Difference(words, found), "") << "listed here, and refused";
}

class AllowedCallsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kSanitized) GTEST_SKIP() << "no filter in this build";
    if (!HasCapability(CAP_SYS_ADMIN)) GTEST_SKIP() << "needs root";
  }
};

TEST_F(AllowedCallsTest, OfAMount) { ExpectAllowed({}, kMount); }

TEST_F(AllowedCallsTest, OfAMountOverIoUring) {
  ExpectAllowed({.uring = true}, std::string(kMount) + ' ' + kUring);
}

TEST_F(AllowedCallsTest, OfAMountThatIsStrictlyShutIn) {
  std::string calls = kMount;
  const std::string handles = "open_by_handle_at ";
  calls.erase(calls.find(handles), handles.size());
  ExpectAllowed({.file_handles = false}, calls);
}

}  // namespace
}  // namespace tracefs

#endif
