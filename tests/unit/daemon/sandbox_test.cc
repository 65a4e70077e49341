// The sandbox, entered by a child that then says what it can still do
// (sandbox.h, seccomp_filter.h, capabilities.h).
#include "tracefs/daemon/sandbox.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <thread>

#include "tests/unit/daemon/in_child.h"
#include "tracefs/base/kernel_version.h"
#include "tracefs/base/sanitizers.h"
#include "tracefs/daemon/capabilities.h"

namespace tracefs {
namespace {

std::string StatusLine(const std::string& key) {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(key + ":", 0) == 0) return line;
  }
  return key + " missing";
}

class SandboxTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!HasCapability(CAP_SYS_ADMIN)) GTEST_SKIP() << "needs root";
  }

  // `body` in a child in the sandbox.
  static std::string Inside(
      const std::function<std::string(Sandbox& sandbox)>& body,
      bool uring = false) {
    return InChild([&]() -> std::string {
      if (Status s = DropAlways(); !s.ok()) return s.message();
      const Result<UniqueFd> proc = OpenProc();
      if (!proc.ok()) return proc.status().message();
      UniqueFd sys;
      if (uring) {
        Result<UniqueFd> opened = OpenSys();
        if (!opened.ok()) return opened.status().message();
        sys = *std::move(opened);
      }
      // A private proc knows the process that opens it.
      auto sandbox = Sandbox::Enter(
          {.proc = proc->get(), .uring = uring, .sys = sys.get()});
      if (!sandbox.ok()) return sandbox.status().message();
      return body(**sandbox);
    });
  }
};

TEST_F(SandboxTest, KeepsTheCapabilitiesOfPassingThroughAndNoOthers) {
  uint64_t wanted = CapabilityBit(CAP_CHOWN) | CapabilityBit(CAP_DAC_OVERRIDE) |
                    CapabilityBit(CAP_DAC_READ_SEARCH) |
                    CapabilityBit(CAP_FOWNER) | CapabilityBit(CAP_FSETID) |
                    CapabilityBit(CAP_SETGID) | CapabilityBit(CAP_SETUID) |
                    CapabilityBit(CAP_LINUX_IMMUTABLE) |
                    CapabilityBit(CAP_SYS_ADMIN) | CapabilityBit(CAP_MKNOD) |
                    CapabilityBit(CAP_SETFCAP);
  if (kSanitized) wanted |= CapabilityBit(CAP_SYS_PTRACE);
  if (!IsKernelAtLeast(6, 6)) wanted |= CapabilityBit(CAP_NET_ADMIN);
  rlimit nice;
  ASSERT_EQ(::getrlimit(RLIMIT_NICE, &nice), 0);
  if (!HasCapability(CAP_SYS_RESOURCE) && nice.rlim_max < 40) {
    wanted |= CapabilityBit(CAP_SYS_NICE);
  }
  // What is not there cannot be kept.
  wanted &= EffectiveCapabilities();
  EXPECT_EQ(
      Inside([](Sandbox&) { return CapabilityNames(EffectiveCapabilities()); }),
      CapabilityNames(wanted));
}

TEST_F(SandboxTest, BoundingSetIsNoWider) {
  EXPECT_EQ(Inside([](Sandbox&) {
              return StatusLine("CapBnd").substr(7) ==
                             StatusLine("CapPrm").substr(7)
                         ? "equal"
                         : StatusLine("CapBnd");
            }),
            "equal");
}

TEST_F(SandboxTest, HasNoGroupsNoNewPrivilegesNoCore) {
  EXPECT_EQ(Inside([](Sandbox&) {
              rlimit core;
              ::getrlimit(RLIMIT_CORE, &core);
              return StatusLine("Groups") + ' ' + StatusLine("NoNewPrivs") +
                     ' ' + std::to_string(core.rlim_max);
            }),
            "Groups:\t  NoNewPrivs:\t1 0");
}

TEST_F(SandboxTest, RootHoldsNothingButProcesses) {
  EXPECT_EQ(
      Inside([](Sandbox&) {
        std::set<std::string> found;
        for (const auto& entry : std::filesystem::directory_iterator("/")) {
          found.insert(entry.path().filename());
        }
        std::string text;
        for (const std::string& name : found) text += name + ' ';
        for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
          const std::string name = entry.path().filename();
          if (name.find_first_not_of("0123456789") != std::string::npos &&
              name != "self" && name != "thread-self") {
            text += "/proc/" + name + ' ';
          }
        }
        return text;
      }),
      "proc ");
}

TEST_F(SandboxTest, NothingCanBeMadeInTheRoot) {
  EXPECT_EQ(Inside([](Sandbox&) {
              const int fd = ::openat(AT_FDCWD, "/f", O_CREAT | O_RDWR, 0600);
              return std::to_string(fd) + ' ' + std::to_string(errno);
            }),
            "-1 " + std::to_string(EROFS));
}

TEST_F(SandboxTest, TheOldRootIsOutOfReach) {
  EXPECT_EQ(Inside([](Sandbox&) -> std::string {
              struct stat now, up;
              ::stat("/", &now);
              ::stat("/../../..", &up);
              return now.st_dev == up.st_dev && now.st_ino == up.st_ino
                         ? "same"
                         : "elsewhere";
            }),
            "same");
}

TEST_F(SandboxTest, TheWayUpFromProcStaysInside) {
  EXPECT_EQ(InChild([]() -> std::string {
              const Result<UniqueFd> proc = OpenProc();
              if (!proc.ok()) return proc.status().message();
              const UniqueFd up(::openat(proc->get(), "../..", O_PATH));
              struct stat here, there;
              ::fstat(proc->get(), &here);
              ::fstat(up.get(), &there);
              return here.st_dev == there.st_dev ? "same" : "elsewhere";
            }),
            "same");
}

TEST_F(SandboxTest, OpenFilesStayOpenAndReopenThroughProc) {
  char name[] = "/tmp/tracefs-sandbox-XXXXXX";
  const UniqueFd file(::mkostemp(name, O_CLOEXEC));
  ASSERT_TRUE(file);
  EXPECT_EQ(Inside([&](Sandbox&) -> std::string {
              const std::string link =
                  "/proc/self/fd/" + std::to_string(file.get());
              const UniqueFd again(
                  ::openat(AT_FDCWD, link.c_str(), O_WRONLY | O_CLOEXEC));
              return ::write(again.get(), "x", 1) == 1 ? "written"
                                                       : std::to_string(errno);
            }),
            "written");
  ::unlink(name);
}

TEST_F(SandboxTest, ThreadsStillWork) {
  EXPECT_EQ(Inside([](Sandbox&) {
              std::string text;
              std::thread([&] { text = "ran"; }).join();
              return text;
            }),
            "ran");
}

TEST_F(SandboxTest, NamespacesAreItsOwn) {
  const auto inode = [](const char* name) {
    struct stat st {};
    ::stat((std::string("/proc/self/ns/") + name).c_str(), &st);
    return std::to_string(st.st_ino);
  };
  for (const char* name : {"mnt", "net", "ipc", "uts"}) {
    EXPECT_NE(Inside([&](Sandbox&) { return inode(name); }), inode(name))
        << name;
  }
  // Callers are known by their pids, and capabilities count in this one.
  for (const char* name : {"pid", "user"}) {
    EXPECT_EQ(Inside([&](Sandbox&) { return inode(name); }), inode(name))
        << name;
  }
}

TEST_F(SandboxTest, IoUringFindsAllProcessors) {
  const long outside = ::sysconf(_SC_NPROCESSORS_CONF);
  EXPECT_EQ(Inside(
                [](Sandbox&) {
                  return std::to_string(::sysconf(_SC_NPROCESSORS_CONF));
                },
                /*uring=*/true),
            std::to_string(outside));
}

TEST_F(SandboxTest, IsNotEnteredWithThreads) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer may have threads of its own";
  EXPECT_NE(InChild([]() -> std::string {
              std::atomic<bool> end{false};
              std::thread other([&] {
                while (!end) ::sched_yield();
              });
              auto sandbox = Sandbox::Enter({});
              end = true;
              other.join();
              return sandbox.status().message();
            }).find("threads"),
            std::string::npos);
}

class SeccompTest : public SandboxTest {
 protected:
  void SetUp() override {
    SandboxTest::SetUp();
    if (kSanitized || SeccompVersion().rfind("libseccomp", 0) != 0) {
      GTEST_SKIP() << "no filter in this build";
    }
  }
  // The errno of `call` in the sandbox; 0 = it worked.
  static std::string Errno(const std::function<long()>& call) {
    return Inside([&](Sandbox&) {
      // What the filter's thread prints is not wanted here.
      ::close(STDERR_FILENO);
      return std::to_string(call() == -1 ? errno : 0);
    });
  }
};

TEST_F(SeccompTest, Malicious_WaysOutAreRefused) {
  const std::string refused = std::to_string(EPERM);
  EXPECT_EQ(Errno([] { return ::syscall(SYS_socket, AF_INET, 1, 0); }),
            refused);
  EXPECT_EQ(Errno([] {
              return ::syscall(SYS_execve, "/proc/self/exe", nullptr, nullptr);
            }),
            refused);
  EXPECT_EQ(Errno([] { return ::syscall(SYS_mount, 0, 0, 0, 0, 0); }), refused);
  EXPECT_EQ(Errno([] { return ::syscall(SYS_setns, 0, 0); }), refused);
  EXPECT_EQ(Errno([] { return ::syscall(SYS_ptrace, 0, 0, 0, 0); }), refused);
  EXPECT_EQ(Errno([] { return ::syscall(SYS_unshare, CLONE_NEWUSER); }),
            refused);
  EXPECT_EQ(
      Errno([] { return ::syscall(SYS_unshare, CLONE_FS | CLONE_NEWNS); }),
      refused);
  EXPECT_EQ(Errno([] { return ::syscall(SYS_bpf, 0, 0, 0); }), refused);
  EXPECT_EQ(Errno([] { return ::syscall(SYS_kill, 1, 0); }), refused);
  EXPECT_EQ(Errno([] { return ::syscall(SYS_tgkill, 1, 1, 0); }), refused);
  EXPECT_EQ(Errno([] { return ::syscall(SYS_fork); }), refused);
  EXPECT_EQ(Errno([] { return ::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); }),
            refused);
  EXPECT_EQ(Errno([] { return ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); }),
            refused);
  EXPECT_EQ(Errno([] {
              return reinterpret_cast<long>(
                  ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
            }),
            refused);
  EXPECT_EQ(
      Errno([] { return ::syscall(SYS_ioctl, 0, 0x5412 /*TIOCSTI*/, ""); }),
      refused);
  EXPECT_EQ(Errno([] { return ::syscall(SYS_io_uring_setup, 1, nullptr); }),
            refused);
  // A number that no kernel has yet.
  EXPECT_EQ(Errno([] { return ::syscall(5000); }), refused);
}

TEST_F(SeccompTest, ProcessesAreMadeWithCloneOnly) {
  // So that the C library falls back to what can be looked at.
  EXPECT_EQ(Errno([] { return ::syscall(SYS_clone3, nullptr, 0); }),
            std::to_string(ENOSYS));
}

TEST_F(SeccompTest, WhatWorkersDoIsAllowed) {
  EXPECT_EQ(Errno([] { return ::syscall(SYS_unshare, CLONE_FS); }), "0");
  EXPECT_EQ(Errno([] { return ::syscall(SYS_setfsuid, 0); }), "0");
  EXPECT_EQ(Errno([] { return ::prctl(PR_SET_NAME, "x", 0, 0, 0); }), "0");
  EXPECT_EQ(Errno([] { return ::setpriority(PRIO_PROCESS, 0, -5); }), "0");
}

TEST_F(SeccompTest, RefusalsAreCounted) {
  EXPECT_EQ(Inside([](Sandbox& sandbox) {
              ::close(STDERR_FILENO);
              EXPECT_EQ(sandbox.Refusals(), "");
              for (int i = 0; i < 3; ++i) ::syscall(SYS_socket, AF_INET, 1, 0);
              ::syscall(SYS_kill, 1, 0);
              return sandbox.Refusals();
            }),
            "socket 3, kill 1");
}

TEST_F(SeccompTest, EndsWhileCallsAreRefused) {
  EXPECT_EQ(Inside([](Sandbox&) {
              ::close(STDERR_FILENO);
              std::thread([] {
                for (int i = 0; i < 1000; ++i) ::syscall(SYS_socket, 1, 1, 0);
              }).detach();
              return "ended";
            }),
            "ended");
}

// --- What tracefs-recv keeps: less.

class ReceiverSandboxTest : public SeccompTest {
 protected:
  static std::string AsReceiver(const std::function<std::string()>& body,
                                const Account* account = nullptr) {
    return InChild([&]() -> std::string {
      auto sandbox = Sandbox::Enter({.receiver = true, .account = account});
      if (!sandbox.ok()) return sandbox.status().message();
      ::close(STDERR_FILENO);
      return body();
    });
  }
  static std::string Errno(const std::function<long()>& call) {
    return AsReceiver([&] { return std::to_string(call() == -1 ? errno : 0); });
  }
};

TEST_F(ReceiverSandboxTest, NoCapabilityIsLeft) {
  EXPECT_EQ(AsReceiver([] {
              return CapabilityNames(EffectiveCapabilities()) +
                     StatusLine("CapBnd") + StatusLine("CapPrm");
            }),
            // There is no /proc any more.
            "CapBnd missingCapPrm missing");
}

TEST_F(ReceiverSandboxTest, TurnsIntoAUserForGood) {
  const Account account = {.uid = 12345, .gid = 23456, .groups = {34567}};
  EXPECT_EQ(AsReceiver(
                [] {
                  std::array<gid_t, 4> groups{};
                  const int n = ::getgroups(groups.size(), groups.data());
                  uid_t real = 0, effective = 0, saved = 0;
                  ::getresuid(&real, &effective, &saved);
                  return std::to_string(::getgid()) + ' ' +
                         std::to_string(::getuid()) + ' ' +
                         std::to_string(::geteuid()) + ' ' +
                         (n < 0 ? "refused" : std::to_string(groups[0])) + ' ' +
                         CapabilityNames(EffectiveCapabilities()) +
                         std::to_string(::syscall(SYS_setuid, 0));
                },
                &account),
            "23456 12345 12345 refused -1");
}

TEST_F(ReceiverSandboxTest, Malicious_WaysOutAreRefused) {
  const std::string refused = std::to_string(EPERM);
  const std::pair<const char*, std::function<long()>> calls[] = {
      {"socket", [] { return ::syscall(SYS_socket, AF_INET, 1, 0); }},
      {"connect", [] { return ::syscall(SYS_connect, 0, nullptr, 0); }},
      {"bind", [] { return ::syscall(SYS_bind, 0, nullptr, 0); }},
      {"execve", [] { return ::syscall(SYS_execve, "/", nullptr, nullptr); }},
      {"fork", [] { return ::syscall(SYS_fork); }},
      {"clone", [] { return ::syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); }},
      {"unshare", [] { return ::syscall(SYS_unshare, CLONE_FS); }},
      {"mount", [] { return ::syscall(SYS_mount, 0, 0, 0, 0, 0); }},
      {"ptrace", [] { return ::syscall(SYS_ptrace, 0, 0, 0, 0); }},
      {"process_vm_readv",
       [] { return ::syscall(SYS_process_vm_readv, 1, 0, 0, 0, 0, 0); }},
      {"pidfd_open", [] { return ::syscall(SYS_pidfd_open, 1, 0); }},
      {"open_by_handle_at",
       [] { return ::syscall(SYS_open_by_handle_at, -1, nullptr, 0); }},
      {"linkat", [] { return ::syscall(SYS_linkat, -1, "", -1, "", 0); }},
      {"renameat2", [] { return ::syscall(SYS_renameat2, -1, "", -1, "", 0); }},
      {"symlinkat", [] { return ::syscall(SYS_symlinkat, "", -1, ""); }},
      {"mknodat", [] { return ::syscall(SYS_mknodat, -1, "", 0, 0); }},
      {"fchmod", [] { return ::syscall(SYS_fchmod, -1, 0); }},
      {"fchown", [] { return ::syscall(SYS_fchown, -1, 0, 0); }},
      {"setfsuid", [] { return ::syscall(SYS_setfsuid, 0); }},
      {"setresuid", [] { return ::syscall(SYS_setresuid, 0, 0, 0); }},
      {"kill", [] { return ::syscall(SYS_kill, 1, 0); }},
      {"bpf", [] { return ::syscall(SYS_bpf, 0, 0, 0); }},
      {"io_uring_setup",
       [] { return ::syscall(SYS_io_uring_setup, 1, nullptr); }},
      {"PR_SET_DUMPABLE", [] { return ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); }},
      {"TIOCSTI", [] { return ::syscall(SYS_ioctl, 0, 0x5412, ""); }},
      {"new code",
       [] {
         return reinterpret_cast<long>(
             ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
       }},
      {"changed code",
       [] {
         void* const page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
         return static_cast<long>(
             ::mprotect(page, 4096, PROT_READ | PROT_EXEC));
       }},
  };
  for (const auto& [name, call] : calls) {
    EXPECT_EQ(Errno(call), refused) << name;
  }
}

TEST_F(ReceiverSandboxTest, WhatItHasOpenServesOn) {
  char name[] = "/tmp/tracefs-sandbox-XXXXXX";
  ASSERT_NE(::mkdtemp(name), nullptr);
  const UniqueFd folder(::open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  std::array<int, 2> ends;
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  EXPECT_EQ(AsReceiver([&]() -> std::string {
              std::string text;
              std::thread([&] {
                const UniqueFd file(::openat(folder.get(), "t",
                                             O_RDWR | O_CREAT | O_EXCL, 0600));
                if (::pwrite(file.get(), "hello", 5, 0) != 5) return;
                if (::ftruncate(file.get(), 4) != 0) return;
                if (::fdatasync(file.get()) != 0) return;
                text = "kept";
              }).join();
              if (::send(ends[0], "x", 1, MSG_NOSIGNAL) != 1) return "deaf";
              char byte = 0;
              if (::recv(ends[1], &byte, 1, 0) != 1) return "mute";
              if (::unlinkat(folder.get(), "t", 0) != 0) return "stuck";
              return text;
            }),
            "kept");
  ::close(ends[0]);
  ::close(ends[1]);
  EXPECT_EQ(::rmdir(name), 0);
}

TEST(AccountTest, IsFoundByNameAndByNumber) {
  const Result<Account> root = FindAccount("root");
  ASSERT_TRUE(root.ok()) << root.status().message();
  EXPECT_EQ(root->uid, 0u);
  EXPECT_EQ(root->groups.at(0), root->gid);
  const Result<Account> number = FindAccount("0");
  ASSERT_TRUE(number.ok());
  EXPECT_EQ(number->uid, 0u);
  for (const char* none : {"", "no such user", "0x0", "-1"}) {
    EXPECT_EQ(FindAccount(none).status().code(), StatusCode::kInvalid) << none;
  }
}

TEST(CapabilitiesTest, AreNamed) {
  EXPECT_EQ(CapabilityNames(0), "");
  EXPECT_EQ(
      CapabilityNames(CapabilityBit(CAP_CHOWN) | CapabilityBit(CAP_SYS_ADMIN) |
                      CapabilityBit(CAP_CHECKPOINT_RESTORE)),
      "chown sys_admin checkpoint_restore");
  EXPECT_EQ(CapabilityNames(uint64_t{1} << 63), "63");
}

TEST(CapabilitiesTest, AreLimitedForGood) {
  if (!HasCapability(CAP_SETPCAP)) GTEST_SKIP() << "needs root";
  EXPECT_EQ(InChild([]() -> std::string {
              if (!LimitCapabilities(CapabilityBit(CAP_CHOWN)).ok()) return "!";
              return StatusLine("CapPrm") + ' ' + StatusLine("CapBnd");
            }),
            "CapPrm:\t0000000000000001 CapBnd:\t0000000000000001");
}

TEST(KernelVersionTest, IsCompared) {
  EXPECT_TRUE(IsKernelAtLeast("6.18.44-amd64", 6, 18));
  EXPECT_TRUE(IsKernelAtLeast("6.18.44-amd64", 6, 9));
  EXPECT_TRUE(IsKernelAtLeast("7.0", 6, 18));
  EXPECT_FALSE(IsKernelAtLeast("6.9.1", 6, 18));
  EXPECT_FALSE(IsKernelAtLeast("5.19", 6, 0));
  EXPECT_FALSE(IsKernelAtLeast("", 0, 0));
  EXPECT_FALSE(IsKernelAtLeast("six.one", 0, 0));
  EXPECT_FALSE(IsKernelAtLeast("6", 6, 0));
}

}  // namespace
}  // namespace tracefs
