// StracePass: which call is taken by which function.
#include <algorithm>

#include "tracefs/import/strace_pass.h"

namespace tracefs::import {
namespace {

// Nothing of these concerns the files of a tree.
constexpr std::string_view kNothing =
    "brk mprotect munmap mremap madvise msync mlock futex futex_waitv "
    "set_tid_address set_robust_list get_robust_list rseq arch_prctl prctl "
    "prlimit64 getrlimit setrlimit getrusage getrandom uname sysinfo getpid "
    "getppid gettid getuid geteuid getgid getegid getpgrp getpgid getsid "
    "getgroups getresuid getresgid setpgid setsid setuid setgid setreuid "
    "setregid setresuid setresgid setgroups setfsuid setfsgid capget capset "
    "rt_sigaction rt_sigprocmask rt_sigreturn rt_sigsuspend rt_sigtimedwait "
    "rt_sigpending sigaltstack kill tkill tgkill pause alarm setitimer "
    "getitimer nanosleep clock_nanosleep clock_gettime clock_getres "
    "gettimeofday time times timer_create timer_settime timer_delete "
    "timerfd_create timerfd_settime eventfd2 signalfd4 restart_syscall "
    "sched_yield sched_getaffinity sched_setaffinity sched_getparam "
    "sched_getscheduler sched_setscheduler getpriority setpriority ioprio_set "
    "wait4 waitid exit exit_group pipe pipe2 socket socketpair bind listen "
    "accept accept4 connect getsockname getpeername getsockopt setsockopt "
    "sendto sendmsg sendmmsg recvfrom recvmsg recvmmsg shutdown poll ppoll "
    "select pselect6 epoll_create1 epoll_ctl epoll_wait epoll_pwait "
    "epoll_pwait2 fadvise64 readahead shmget shmat shmctl shmdt semget semop "
    "semctl semtimedop memfd_create membarrier getcpu mincore get_mempolicy "
    "personality getcwd kcmp pidfd_open";

}  // namespace

const StracePass::Row StracePass::kRows[] = {
    {"open", &StracePass::DoOpen},
    {"openat", &StracePass::DoOpen, kAt},
    {"creat", &StracePass::DoOpen, kOther},
    {"openat2", &StracePass::DoOpen, kAt | kStruct},
    {"close", &StracePass::DoClose},
    {"close_range", &StracePass::DoClose, kOther},
    {"dup", &StracePass::DoDup},
    {"dup2", &StracePass::DoDup},
    {"dup3", &StracePass::DoDup, kFlags},
    {"fcntl", &StracePass::DoFcntl},
    {"fcntl64", &StracePass::DoFcntl},
    {"read", &StracePass::DoTransfer},
    {"pread64", &StracePass::DoTransfer, kPlaced},
    {"readv", &StracePass::DoTransfer, kVector},
    {"preadv", &StracePass::DoTransfer, kPlaced | kVector},
    {"preadv2", &StracePass::DoTransfer, kPlaced | kVector},
    {"write", &StracePass::DoTransfer, kWrites},
    {"pwrite64", &StracePass::DoTransfer, kWrites | kPlaced},
    {"writev", &StracePass::DoTransfer, kWrites | kVector},
    {"pwritev", &StracePass::DoTransfer, kWrites | kPlaced | kVector},
    {"pwritev2", &StracePass::DoTransfer, kWrites | kPlaced | kVector},
    {"lseek", &StracePass::DoSeek},
    {"copy_file_range", &StracePass::DoCopy},
    {"sendfile", &StracePass::DoCopy, kOther},
    {"sendfile64", &StracePass::DoCopy, kOther},
    {"stat", &StracePass::DoStat},
    {"stat64", &StracePass::DoStat},
    {"newfstatat", &StracePass::DoStat, kAt},
    {"fstatat64", &StracePass::DoStat, kAt},
    {"fstat", &StracePass::DoStat, kFd},
    {"fstat64", &StracePass::DoStat, kFd},
    {"lstat", &StracePass::DoStat, kLinkItself},
    {"lstat64", &StracePass::DoStat, kLinkItself},
    {"statx", &StracePass::DoStat, kAt | kStruct},
    {"access", &StracePass::DoAccess},
    {"faccessat", &StracePass::DoAccess, kAt},
    {"faccessat2", &StracePass::DoAccess, kAt},
    {"readlink", &StracePass::DoReadlink},
    {"readlinkat", &StracePass::DoReadlink, kAt},
    {"mkdir", &StracePass::DoMake},
    {"mkdirat", &StracePass::DoMake, kAt},
    {"symlink", &StracePass::DoMake, kMakeLink},
    {"symlinkat", &StracePass::DoMake, kMakeLink | kAt},
    {"mknod", &StracePass::DoMake, kMakeNode},
    {"mknodat", &StracePass::DoMake, kMakeNode | kAt},
    {"unlink", &StracePass::DoRemove},
    {"unlinkat", &StracePass::DoRemove, kAt},
    {"rmdir", &StracePass::DoRemove, kOther},
    {"rename", &StracePass::DoRename},
    {"renameat", &StracePass::DoRename, kAt},
    {"renameat2", &StracePass::DoRename, kAt | kFlags},
    {"link", &StracePass::DoLink},
    {"linkat", &StracePass::DoLink, kAt},
    {"chmod", &StracePass::DoMode},
    {"fchmodat", &StracePass::DoMode, kAt},
    {"fchmodat2", &StracePass::DoMode, kAt},
    {"fchmod", &StracePass::DoMode, kFd},
    {"chown", &StracePass::DoOwner},
    {"fchownat", &StracePass::DoOwner, kAt},
    {"fchown", &StracePass::DoOwner, kFd},
    {"lchown", &StracePass::DoOwner, kLinkItself},
    {"utime", &StracePass::DoTimes, kStruct},
    {"utimensat", &StracePass::DoTimes, kAt | kFlags},
    {"utimes", &StracePass::DoTimes},
    {"futimesat", &StracePass::DoTimes, kAt},
    {"truncate", &StracePass::DoTruncate},
    {"truncate64", &StracePass::DoTruncate},
    {"ftruncate", &StracePass::DoTruncate, kFd},
    {"ftruncate64", &StracePass::DoTruncate, kFd},
    {"fallocate", &StracePass::DoFallocate},
    {"fsync", &StracePass::DoSync},
    {"fdatasync", &StracePass::DoSync, kOther},
    {"getdents64", &StracePass::DoList},
    {"getdents", &StracePass::DoList},
    {"statfs", &StracePass::DoStatfs},
    {"fstatfs", &StracePass::DoStatfs, kFd},
    {"setxattr", &StracePass::DoXattr},
    {"lsetxattr", &StracePass::DoXattr, kLinkItself},
    {"fsetxattr", &StracePass::DoXattr, kFd},
    {"getxattr", &StracePass::DoXattr, kGet},
    {"lgetxattr", &StracePass::DoXattr, kGet | kLinkItself},
    {"fgetxattr", &StracePass::DoXattr, kGet | kFd},
    {"listxattr", &StracePass::DoXattr, kList},
    {"llistxattr", &StracePass::DoXattr, kList | kLinkItself},
    {"flistxattr", &StracePass::DoXattr, kList | kFd},
    {"removexattr", &StracePass::DoXattr, kRemove},
    {"lremovexattr", &StracePass::DoXattr, kRemove | kLinkItself},
    {"fremovexattr", &StracePass::DoXattr, kRemove | kFd},
    {"flock", &StracePass::DoFlock},
    {"mmap", &StracePass::DoMap},
    {"chdir", &StracePass::DoFolder},
    {"fchdir", &StracePass::DoFolder, kFd},
    {"umask", &StracePass::DoUmask},
    {"clone", &StracePass::DoClone},
    {"clone3", &StracePass::DoClone},
    {"fork", &StracePass::DoClone},
    {"vfork", &StracePass::DoClone},
    {"execve", &StracePass::DoExec},
    {"execveat", &StracePass::DoExec, kAt},
};

const std::unordered_map<std::string_view, StracePass::Row>&
StracePass::Rows() {
  static const auto kMap = [] {
    std::unordered_map<std::string_view, Row> map;
    for (const Row& row : kRows) map.emplace(row.name, row);
    for (size_t at = 0; at < kNothing.size();) {
      const size_t end = std::min(kNothing.find(' ', at), kNothing.size());
      const std::string_view name = kNothing.substr(at, end - at);
      map.emplace(name, Row{name, &StracePass::DoNothing, 0});
      at = end + 1;
    }
    return map;
  }();
  return kMap;
}

}  // namespace tracefs::import
