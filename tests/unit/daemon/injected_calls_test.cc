// A daemon in its sandbox that somebody else steers: the calls he would make,
// and what becomes of each. docs/security.md says the same in words.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <linux/securebits.h>
#include <sched.h>
#include <signal.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fstream>
#include <utility>
#include <vector>

#include "tests/unit/daemon/in_child.h"
#include "tests/unit/filters/output/temp_folder.h"
#include "tracefs/base/enclosed_folder.h"
#include "tracefs/base/sanitizers.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/daemon/capabilities.h"
#include "tracefs/daemon/landlock.h"
#include "tracefs/daemon/sandbox.h"

namespace tracefs {
namespace {

constexpr uid_t kUser = 65534;

// A process that does nothing until this ends; its directory is `folder`.
class Victim {
 public:
  Victim(uid_t uid, const std::string& folder) {
    std::array<int, 2> ends;
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      // As a service of root's that keeps no capability, or a user's program.
      (void)!::chdir(folder.c_str());
      (void)LimitCapabilities(CapabilityBit(CAP_SETUID));
      if (::setresuid(uid, uid, uid) != 0) ::_exit(1);
      (void)LimitCapabilities(0);
      ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
      (void)!::write(ends[1], "x", 1);
      ::close(ends[1]);
      for (;;) ::pause();
    }
    ::close(ends[1]);
    char byte;
    EXPECT_EQ(::read(ends[0], &byte, 1), 1);
    ::close(ends[0]);
  }
  ~Victim() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Victim(const Victim&) = delete;
  Victim& operator=(const Victim&) = delete;

  std::string Proc(const std::string& name) const {
    return "/proc/" + std::to_string(pid_) + '/' + name;
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

// "name: errno" of each call.
struct Call {
  const char* name;
  std::function<long()> make;
};

class InjectedCallsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!HasCapability(CAP_SYS_ADMIN)) GTEST_SKIP() << "needs root";
    for (const char* folder : {"source", "out", "outside"}) {
      ASSERT_EQ(::mkdir(folder_.Path(folder).c_str(), 0755), 0);
    }
    folder_.Write("source/file", "content", 0644);
    folder_.Write("outside/secret", "secret");
    source_ = Open("source");
    out_ = Open("out");
  }
  UniqueFd Open(const std::string& name) const {
    return EncloseFolder(UniqueFd(
        ::open(folder_.Path(name).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)));
  }

  // One line for each call made in the sandbox, as that user: its name and the
  // errno. What is in front of each name in `calls` is made first.
  static std::string Errors(const std::vector<Call>& calls,
                            bool file_handles = true) {
    return InChild([&]() -> std::string {
      if (Status s = DropAlways(); !s.ok()) return s.message();
      const Result<UniqueFd> proc = OpenProc();
      if (!proc.ok()) return proc.status().message();
      auto sandbox =
          Sandbox::Enter({.proc = proc->get(), .file_handles = file_handles});
      if (!sandbox.ok()) return sandbox.status().message();
      // What the filter's thread prints is not wanted here.
      ::close(STDERR_FILENO);
      std::string text;
      for (const Call& call : calls) {
        errno = 0;
        const long result = call.make();
        text += std::string(call.name) + ": " +
                (result == -1 ? ::strerrorname_np(errno) : "done") + '\n';
      }
      return text;
    });
  }
  // The same text if all end that way.
  static std::string All(const std::vector<Call>& calls, const char* how) {
    std::string text;
    for (const Call& call : calls) {
      text += std::string(call.name) + ": " + how + '\n';
    }
    return text;
  }
  static long OpenAs(uid_t uid, const std::string& path, int flags) {
    ::setfsuid(uid);
    const int fd = ::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK);
    const int error = errno;
    ::setfsuid(0);
    if (fd >= 0) ::close(fd);
    errno = error;
    return fd < 0 ? -1 : 0;
  }
  static bool HasDomains() {
    return InChild([] {
             ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
             return EnterLandlockDomain();
           }).rfind("landlock", 0) == 0;
  }

  TempFolder folder_;
  UniqueFd source_;
  UniqueFd out_;
};

// --- Other processes.

TEST_F(InjectedCallsTest, Malicious_NoOtherProcessCanBeLookedInto) {
  if (!HasDomains()) GTEST_SKIP() << "the kernel has no Landlock of that kind";
  for (const uid_t uid : {kUser, uid_t{0}}) {
    const Victim victim(uid, folder_.Path("outside"));
    const auto open = [&](const char* name, int flags) {
      return Call{
          name, [=, &victim] { return OpenAs(uid, victim.Proc(name), flags); }};
    };
    const std::vector<Call> calls = {
        open("root/etc/passwd", O_RDONLY),
        open("root", O_PATH),
        open("cwd/secret", O_RDONLY),
        open("cwd", O_PATH),
        open("exe", O_RDONLY),
        open("fd/0", O_RDONLY),
        open("task/../fd/0", O_RDONLY),
        open("mem", O_RDONLY),
        open("ns/mnt", O_RDONLY),
    };
    EXPECT_EQ(Errors(calls), All(calls, "EACCES")) << "user " << uid;
    const std::vector<Call> writes = {open("mem", O_RDWR),
                                      open("oom_score_adj", O_WRONLY)};
    EXPECT_EQ(Errors(writes), All(writes, "EROFS"));
    // That is the domain's doing: without, a daemon that acts as a user and
    // keeps its capabilities may do that.
    const std::string without = InChild([&] {
      ::prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP);
      (void)LimitCapabilities(CapabilityBit(CAP_DAC_OVERRIDE) |
                              CapabilityBit(CAP_SETUID));
      std::string text;
      for (const char* name : {"root/etc/passwd", "cwd/secret", "mem"}) {
        text += OpenAs(uid, victim.Proc(name), O_RDONLY) == 0 ? '1' : '0';
      }
      return text;
    });
    EXPECT_EQ(without, "111") << "this test shows nothing";
  }
}

TEST_F(InjectedCallsTest, WhatIsSaidOfACallerCanBeRead) {
  for (const uid_t uid : {kUser, uid_t{0}}) {
    const Victim victim(uid, "/");
    const std::string pid = std::to_string(victim.pid());
    const std::vector<Call> calls = {
        {"status", [&] { return OpenAs(0, victim.Proc("status"), O_RDONLY); }},
        {"stat",
         [&] {
           return OpenAs(0, victim.Proc("task/" + pid + "/stat"), O_RDONLY);
         }},
        {"getpgid", [&] { return long{::getpgid(victim.pid())}; }},
        {"getsid", [&] { return long{::getsid(victim.pid())}; }},
        {"pidfd_open",
         [&] { return ::syscall(SYS_pidfd_open, victim.pid(), 0); }},
    };
    EXPECT_EQ(Errors(calls), All(calls, "done"));
  }
}

TEST_F(InjectedCallsTest, Malicious_NoOtherProcessCanBeChanged) {
  if (kSanitized) GTEST_SKIP() << "no filter in this build";
  const Victim victim(0, "/");
  const pid_t pid = victim.pid();
  std::array<int, 2> ends;
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const std::vector<Call> calls = {
      {"kill", [&] { return ::syscall(SYS_kill, pid, SIGKILL); }},
      {"tkill", [&] { return ::syscall(SYS_tkill, pid, SIGKILL); }},
      {"tgkill", [&] { return ::syscall(SYS_tgkill, pid, pid, SIGKILL); }},
      {"rt_sigqueueinfo",
       [&] { return ::syscall(SYS_rt_sigqueueinfo, pid, SIGKILL, nullptr); }},
      {"pidfd_send_signal",
       [&] {
         return ::syscall(SYS_pidfd_send_signal, 0, SIGKILL, nullptr, 0);
       }},
      {"F_SETOWN", [&] { return long{::fcntl(ends[0], F_SETOWN, pid)}; }},
      {"F_SETSIG", [&] { return long{::fcntl(ends[0], F_SETSIG, SIGKILL)}; }},
      {"F_NOTIFY", [&] { return long{::fcntl(ends[0], F_NOTIFY, 1)}; }},
      {"FIOSETOWN", [&] { return long{::ioctl(ends[0], 0x8901, &pid)}; }},
      {"ptrace",
       [&] { return ::syscall(SYS_ptrace, PTRACE_SEIZE, pid, 0, 0); }},
      {"process_vm_readv",
       [&] { return ::syscall(SYS_process_vm_readv, pid, 0, 0, 0, 0, 0); }},
      {"process_vm_writev",
       [&] { return ::syscall(SYS_process_vm_writev, pid, 0, 0, 0, 0, 0); }},
      {"pidfd_getfd", [&] { return ::syscall(SYS_pidfd_getfd, 0, 0, 0); }},
      {"kcmp", [&] { return ::syscall(SYS_kcmp, pid, pid, 0, 0, 0); }},
      {"setpriority", [&] { return long{::setpriority(PRIO_PROCESS, 1, 19)}; }},
      // Of all of root's; for want of a right it would change nothing.
      {"PRIO_USER", [&] { return long{::setpriority(PRIO_USER, 0, -20)}; }},
      {"PRIO_PGRP", [&] { return long{::setpriority(PRIO_PGRP, 0, -20)}; }},
      {"prlimit", [&] { return ::syscall(SYS_prlimit64, pid, 0, 0, 0); }},
      {"sched_setscheduler",
       [&] { return ::syscall(SYS_sched_setscheduler, pid, 0, nullptr); }},
      {"sched_setaffinity",
       [&] {
         const uint64_t all = ~uint64_t{0};
         return ::syscall(SYS_sched_setaffinity, pid, sizeof all, &all);
       }},
      {"ioprio_set", [&] { return ::syscall(SYS_ioprio_set, 1, pid, 0); }},
      {"migrate_pages",
       [&] { return ::syscall(SYS_migrate_pages, pid, 0, 0, 0); }},
      {"perf_event_open",
       [&] { return ::syscall(SYS_perf_event_open, nullptr, pid, 0, 0, 0); }},
  };
  EXPECT_EQ(Errors(calls), All(calls, "EPERM"));
  EXPECT_EQ(::kill(pid, 0), 0);
  ::close(ends[0]);
  ::close(ends[1]);
}

// --- Files.

TEST_F(InjectedCallsTest, Malicious_NoDescriptorLeadsOutOfItsDirectory) {
  const auto open = [](const UniqueFd& at, const char* path) {
    return Call{path, [&at, path] {
                  return long{::openat(at.get(), path, O_RDONLY | O_CLOEXEC)};
                }};
  };
  const std::vector<Call> calls = {
      open(out_, "../outside/secret"),
      open(out_, "../../../../../etc/passwd"),
      open(out_, "/etc/passwd"),
      open(source_, "../outside/secret"),
      open(source_, "../../../../../etc/passwd"),
      {"/etc/passwd", [] { return long{::open("/etc/passwd", O_RDONLY)}; }},
      {"up from proc",
       [] { return long{::open("/proc/../etc/passwd", O_RDONLY)}; }},
      {"its own old root",
       [] { return long{::open("/proc/self/root/etc/passwd", O_RDONLY)}; }},
      {"a program", [] { return long{::open("/bin/sh", O_RDONLY)}; }},
  };
  EXPECT_EQ(Errors(calls), All(calls, "ENOENT"));
}

TEST_F(InjectedCallsTest, Malicious_NoDeviceCanBeOpened) {
  const auto make = [&](const UniqueFd& at) {
    ::mknodat(at.get(), "kmsg", S_IFCHR | 0600, ::makedev(1, 11));
    return long{::openat(at.get(), "kmsg", O_RDONLY | O_CLOEXEC)};
  };
  const std::vector<Call> calls = {
      {"beside an output", [&] { return make(out_); }},
      {"below the source", [&] { return make(source_); }},
  };
  EXPECT_EQ(Errors(calls), All(calls, "EACCES"));
}

TEST_F(InjectedCallsTest, FilesBelowTheSourceAreInItsHands) {
  // What passing operations through for all users means.
  const auto file = [&](const char* name, int flags) {
    return UniqueFd(::openat(source_.get(), name, flags | O_CLOEXEC, 0644));
  };
  const std::vector<Call> calls = {
      {"read", [&] { return file("file", O_RDONLY).valid() ? 0L : -1L; }},
      {"write",
       [&] { return long{::write(file("file", O_WRONLY).get(), "x", 1)}; }},
      {"create",
       [&] { return file("new", O_CREAT | O_WRONLY).valid() ? 0L : -1L; }},
      {"chown",
       [&] { return long{::fchown(file("new", O_RDONLY).get(), 1000, 1000)}; }},
      {"set-user-id",
       [&] { return long{::fchmod(file("new", O_RDONLY).get(), 04755)}; }},
      {"rename",
       [&] {
         return long{
             ::renameat(source_.get(), "new", source_.get(), "renamed")};
       }},
      {"link",
       [&] {
         return long{
             ::linkat(source_.get(), "renamed", source_.get(), "link", 0)};
       }},
      {"make a device",
       [&] {
         return long{
             ::mknodat(source_.get(), "null", S_IFCHR | 0600, ::makedev(1, 3))};
       }},
      {"remove", [&] { return long{::unlinkat(source_.get(), "link", 0)}; }},
      {"a file beside an output",
       [&] {
         return long{::openat(out_.get(), "part", O_CREAT | O_WRONLY, 0600)};
       }},
  };
  EXPECT_EQ(Errors(calls), All(calls, "done"));
}

// A file of the same file system that is not below the source, by its handle.
class FileHandleTest : public InjectedCallsTest {
 protected:
  void SetUp() override {
    InjectedCallsTest::SetUp();
    if (IsSkipped()) return;
    handle()->handle_bytes = MAX_HANDLE_SZ;
    int mount_id;
    if (::name_to_handle_at(AT_FDCWD, folder_.Path("outside/secret").c_str(),
                            handle(), &mount_id, 0) != 0) {
      GTEST_SKIP() << "this file system has no handles";
    }
  }
  file_handle* handle() { return reinterpret_cast<file_handle*>(room_); }
  std::vector<Call> Calls() {
    return {{"outside", [this] {
               const UniqueFd mount(
                   ::openat(source_.get(), ".", O_RDONLY | O_DIRECTORY));
               return long{
                   ::open_by_handle_at(mount.get(), handle(), O_RDONLY)};
             }}};
  }
  alignas(file_handle) char room_[sizeof(file_handle) + MAX_HANDLE_SZ] = {};
};

TEST_F(FileHandleTest, TheWholeFileSystemOfTheSourceCanBeReached) {
  // Nothing to be proud of: docs/security.md tells who does not want that to
  // mount with --sandbox strict.
  EXPECT_EQ(Errors(Calls()), "outside: done\n");
}

TEST_F(FileHandleTest, Malicious_NotIfTheSandboxIsStrict) {
  if (kSanitized) GTEST_SKIP() << "no filter in this build";
  EXPECT_EQ(Errors(Calls(), /*file_handles=*/false), "outside: EPERM\n");
}

// --- The machine.

TEST_F(InjectedCallsTest, Malicious_TheMachineCannotBeChanged) {
  if (kSanitized) GTEST_SKIP() << "no filter in this build";
#define CALL(name, ...)                                        \
  Call {                                                       \
#name, [] { return ::syscall(SYS_##name, ##__VA_ARGS__); } \
  }
  const std::vector<Call> calls = {
      // Mounts and roots.
      CALL(mount, 0, 0, 0, 0, 0),
      CALL(umount2, "/", 0),
      CALL(pivot_root, ".", "."),
      CALL(chroot, "/"),
      CALL(open_tree, 0, "", 0),
      CALL(move_mount, 0, "", 0, "", 0),
      CALL(fsopen, "tmpfs", 0),
      CALL(fsmount, 0, 0, 0),
      CALL(fsconfig, 0, 0, 0, 0, 0),
      CALL(fspick, 0, "", 0),
      CALL(mount_setattr, 0, "", 0, 0, 0),
      // Namespaces.
      CALL(setns, 0, 0),
      CALL(unshare, CLONE_NEWUSER),
      CALL(unshare, CLONE_NEWNS),
      CALL(unshare, CLONE_FS | CLONE_NEWPID),
      // Threads that have their own; none would be made, for want of a flag.
      CALL(clone, CLONE_THREAD | CLONE_NEWNS, 0, 0, 0, 0),
      CALL(clone, CLONE_THREAD | CLONE_NEWCGROUP, 0, 0, 0, 0),
      CALL(clone, CLONE_THREAD | CLONE_NEWUTS, 0, 0, 0, 0),
      CALL(clone, CLONE_THREAD | CLONE_NEWIPC, 0, 0, 0, 0),
      CALL(clone, CLONE_THREAD | CLONE_NEWUSER, 0, 0, 0, 0),
      CALL(clone, CLONE_THREAD | CLONE_NEWPID, 0, 0, 0, 0),
      CALL(clone, CLONE_THREAD | CLONE_NEWNET, 0, 0, 0, 0),
      CALL(clone, CLONE_THREAD | CLONE_NEWTIME, 0, 0, 0, 0),
      // Programs and processes.
      CALL(execve, "/proc/self/exe", 0, 0),
      CALL(execveat, 0, "", 0, 0, AT_EMPTY_PATH),
      CALL(fork),
      CALL(vfork),
      CALL(clone, SIGCHLD, 0, 0, 0, 0),
      CALL(memfd_create, "x", 0),
      CALL(memfd_secret, 0),
      CALL(userfaultfd, 0),
      CALL(uselib, "x"),
      CALL(personality, READ_IMPLIES_EXEC),
      CALL(seccomp, 0, 0, 0),
      CALL(modify_ldt, 0, 0, 0),
      // Ids.
      CALL(setuid, 0),
      CALL(setresuid, 0, 0, 0),
      CALL(setreuid, 0, 0),
      CALL(setgid, 0),
      CALL(setresgid, 0, 0, 0),
      CALL(setsid),
      // The network.
      CALL(socket, AF_INET, SOCK_STREAM, 0),
      CALL(socket, AF_UNIX, SOCK_STREAM, 0),
      CALL(socket, AF_NETLINK, 3, 0),
      CALL(socketpair, AF_UNIX, 1, 0, 0),
      CALL(connect, 0, 0, 0),
      CALL(bind, 0, 0, 0),
      CALL(listen, 0, 0),
      // The kernel.
      CALL(bpf, 0, 0, 0),
      CALL(init_module, 0, 0, 0),
      CALL(finit_module, 0, 0, 0),
      CALL(delete_module, "x", 0),
      CALL(kexec_load, 0, 0, 0, 0),
      CALL(kexec_file_load, 0, 0, 0, 0, 0),
      CALL(reboot, 0, 0, 0, 0),
      CALL(iopl, 3),
      CALL(ioperm, 0, 1, 1),
      CALL(syslog, 3, 0, 0),
      CALL(quotactl, 0, 0, 0, 0),
      CALL(swapon, "x", 0),
      CALL(swapoff, "x"),
      CALL(acct, 0),
      CALL(sethostname, "x", 1),
      CALL(setdomainname, "x", 1),
      CALL(settimeofday, 0, 0),
      CALL(clock_settime, 0, 0),
      CALL(adjtimex, 0),
      CALL(vhangup),
      CALL(lookup_dcookie, 0, 0, 0),
      CALL(add_key, 0, 0, 0, 0, 0),
      CALL(request_key, 0, 0, 0, 0),
      CALL(keyctl, KEYCTL_GET_KEYRING_ID, 0, 0),
      CALL(io_uring_setup, 1, 0),
      CALL(io_uring_enter, 0, 0, 0, 0, 0, 0),
      CALL(io_setup, 1, 0),
      CALL(fanotify_init, 0, 0),
      CALL(inotify_init1, 0),
      CALL(landlock_create_ruleset, 0, 0, 1),
      CALL(shmget, 0, 4096, 0),
      CALL(shmat, 0, 0, SHM_EXEC),
      CALL(msgget, 0, 0),
      CALL(semget, 0, 0, 0),
      CALL(setrlimit, RLIMIT_CORE, 0),
      CALL(prctl, PR_SET_DUMPABLE, 1, 0, 0, 0),
      CALL(prctl, PR_SET_SECUREBITS, 0, 0, 0, 0),
      CALL(prctl, PR_SET_KEEPCAPS, 1, 0, 0, 0),
      CALL(prctl, PR_SET_MM, 0, 0, 0, 0),
      CALL(prctl, PR_SET_PTRACER, 1, 0, 0),
      // Terminals.
      CALL(ioctl, 0, TIOCSTI, ""),
      CALL(ioctl, 0, TIOCLINUX, ""),
      CALL(ioctl, 0, TIOCSCTTY, 1),
      // A number that no kernel has yet.
      Call{"5000", [] { return ::syscall(5000); }},
  };
#undef CALL
  EXPECT_EQ(Errors(calls), All(calls, "EPERM"));
}

TEST_F(InjectedCallsTest, Malicious_MemoryCannotBecomeCode) {
  if (kSanitized) GTEST_SKIP() << "no filter in this build";
  static const auto pages = [](int protection) {
    return ::mmap(nullptr, 4096, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                  0);
  };
  const std::vector<Call> calls = {
      {"mmap", [] { return reinterpret_cast<long>(pages(PROT_EXEC)); }},
      {"mmap, writable",
       [] { return reinterpret_cast<long>(pages(PROT_EXEC | PROT_WRITE)); }},
      {"mprotect",
       [] {
         return long{::mprotect(pages(PROT_READ), 4096, PROT_READ | PROT_EXEC)};
       }},
      {"mprotect of code",
       [] {
         const auto page = reinterpret_cast<uintptr_t>(&::getpid) & ~4095UL;
         return long{::mprotect(reinterpret_cast<void*>(page), 4096,
                                PROT_READ | PROT_WRITE | PROT_EXEC)};
       }},
      {"pkey_mprotect",
       [] {
         return ::syscall(SYS_pkey_mprotect, pages(PROT_READ), 4096, PROT_EXEC,
                          -1);
       }},
  };
  EXPECT_EQ(Errors(calls), All(calls, "EPERM"));
}

TEST_F(InjectedCallsTest, MemoryThatIsNoCodeIsItsOwn) {
  const std::vector<Call> calls = {
      {"mmap, mprotect, munmap", [] {
         void* const page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
         if (page == MAP_FAILED) return -1L;
         if (::mprotect(page, 4096, PROT_READ) != 0) return -1L;
         return long{::munmap(page, 4096)};
       }}};
  EXPECT_EQ(Errors(calls), All(calls, "done"));
}

// --- The daemon of a user.

TEST_F(InjectedCallsTest, Malicious_OthersOfItsUserCannotLookIntoIt) {
  if (kSanitized) GTEST_SKIP() << "sanitizers look into their own process";
  // /proc/PID belongs to root once a process must not be looked into.
  const auto owner = [](bool sandboxed) {
    return InChild([&]() -> std::string {
      if (::setresuid(kUser, kUser, kUser) != 0) return "setresuid";
      ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
      std::unique_ptr<Sandbox> sandbox;
      if (sandboxed) {
        auto entered = Sandbox::Enter({});
        if (!entered.ok()) return entered.status().message();
        sandbox = *std::move(entered);
      }
      struct stat st;
      if (::stat("/proc/self/environ", &st) != 0) return "stat";
      return std::to_string(st.st_uid);
    });
  };
  EXPECT_EQ(owner(/*sandboxed=*/false), std::to_string(kUser));
  EXPECT_EQ(owner(/*sandboxed=*/true), "0");
}

TEST_F(InjectedCallsTest, Malicious_ItCannotLookIntoItsUsersProcesses) {
  if (!HasDomains()) GTEST_SKIP() << "the kernel has no Landlock of that kind";
  const Victim victim(kUser, "/");
  EXPECT_EQ(InChild([&]() -> std::string {
              if (::setresuid(kUser, kUser, kUser) != 0) return "setresuid";
              std::string text;
              const auto look = [&] {
                text += OpenAs(kUser, victim.Proc("environ"), O_RDONLY) == 0
                            ? "seen "
                            : "hidden ";
              };
              look();
              auto entered = Sandbox::Enter({});
              if (!entered.ok()) return entered.status().message();
              look();
              return text;
            }),
            "seen hidden ");
}

}  // namespace
}  // namespace tracefs
