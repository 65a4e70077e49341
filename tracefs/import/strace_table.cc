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
    {"open", &StracePass::DoOpen, 0},
    {"openat", &StracePass::DoOpen, 1},
    {"creat", &StracePass::DoOpen, 2},
    {"openat2", &StracePass::DoOpen, 3},
    {"close", &StracePass::DoClose, 0},
    {"close_range", &StracePass::DoClose, 1},
    {"dup", &StracePass::DoDup, 0},
    {"dup2", &StracePass::DoDup, 1},
    {"dup3", &StracePass::DoDup, 2},
    {"fcntl", &StracePass::DoFcntl, 0},
    {"fcntl64", &StracePass::DoFcntl, 0},
    {"read", &StracePass::DoTransfer, 0},
    {"pread64", &StracePass::DoTransfer, 1},
    {"readv", &StracePass::DoTransfer, 2},
    {"preadv", &StracePass::DoTransfer, 3},
    {"preadv2", &StracePass::DoTransfer, 3},
    {"write", &StracePass::DoTransfer, 10},
    {"pwrite64", &StracePass::DoTransfer, 11},
    {"writev", &StracePass::DoTransfer, 12},
    {"pwritev", &StracePass::DoTransfer, 13},
    {"pwritev2", &StracePass::DoTransfer, 13},
    {"lseek", &StracePass::DoSeek, 0},
    {"copy_file_range", &StracePass::DoCopy, 0},
    {"sendfile", &StracePass::DoCopy, 1},
    {"sendfile64", &StracePass::DoCopy, 1},
    {"stat", &StracePass::DoStat, 0},
    {"stat64", &StracePass::DoStat, 0},
    {"newfstatat", &StracePass::DoStat, 1},
    {"fstatat64", &StracePass::DoStat, 1},
    {"fstat", &StracePass::DoStat, 2},
    {"fstat64", &StracePass::DoStat, 2},
    {"lstat", &StracePass::DoStat, 3},
    {"lstat64", &StracePass::DoStat, 3},
    {"statx", &StracePass::DoStat, 4},
    {"access", &StracePass::DoAccess, kPlain},
    {"faccessat", &StracePass::DoAccess, kAt},
    {"faccessat2", &StracePass::DoAccess, kAt},
    {"readlink", &StracePass::DoReadlink, kPlain},
    {"readlinkat", &StracePass::DoReadlink, kAt},
    {"mkdir", &StracePass::DoMake, 0},
    {"mkdirat", &StracePass::DoMake, 1},
    {"symlink", &StracePass::DoMake, 2},
    {"symlinkat", &StracePass::DoMake, 3},
    {"mknod", &StracePass::DoMake, 4},
    {"mknodat", &StracePass::DoMake, 5},
    {"unlink", &StracePass::DoRemove, 0},
    {"unlinkat", &StracePass::DoRemove, 1},
    {"rmdir", &StracePass::DoRemove, 2},
    {"rename", &StracePass::DoRename, 0},
    {"renameat", &StracePass::DoRename, 1},
    {"renameat2", &StracePass::DoRename, 2},
    {"link", &StracePass::DoLink, kPlain},
    {"linkat", &StracePass::DoLink, kAt},
    {"chmod", &StracePass::DoMode, kPlain},
    {"fchmodat", &StracePass::DoMode, kAt},
    {"fchmodat2", &StracePass::DoMode, kAt},
    {"fchmod", &StracePass::DoMode, kFd},
    {"chown", &StracePass::DoOwner, kPlain},
    {"fchownat", &StracePass::DoOwner, kAt},
    {"fchown", &StracePass::DoOwner, kFd},
    {"lchown", &StracePass::DoOwner, kLinkItself},
    {"utime", &StracePass::DoTimes, 0},
    {"utimensat", &StracePass::DoTimes, 1},
    {"utimes", &StracePass::DoTimes, 2},
    {"futimesat", &StracePass::DoTimes, 3},
    {"truncate", &StracePass::DoTruncate, kPlain},
    {"truncate64", &StracePass::DoTruncate, kPlain},
    {"ftruncate", &StracePass::DoTruncate, kFd},
    {"ftruncate64", &StracePass::DoTruncate, kFd},
    {"fallocate", &StracePass::DoFallocate, 0},
    {"fsync", &StracePass::DoSync, 0},
    {"fdatasync", &StracePass::DoSync, 1},
    {"getdents64", &StracePass::DoList, 0},
    {"getdents", &StracePass::DoList, 0},
    {"statfs", &StracePass::DoStatfs, kPlain},
    {"fstatfs", &StracePass::DoStatfs, kFd},
    {"setxattr", &StracePass::DoXattr, 0},
    {"lsetxattr", &StracePass::DoXattr, 10},
    {"fsetxattr", &StracePass::DoXattr, 20},
    {"getxattr", &StracePass::DoXattr, 1},
    {"lgetxattr", &StracePass::DoXattr, 11},
    {"fgetxattr", &StracePass::DoXattr, 21},
    {"listxattr", &StracePass::DoXattr, 2},
    {"llistxattr", &StracePass::DoXattr, 12},
    {"flistxattr", &StracePass::DoXattr, 22},
    {"removexattr", &StracePass::DoXattr, 3},
    {"lremovexattr", &StracePass::DoXattr, 13},
    {"fremovexattr", &StracePass::DoXattr, 23},
    {"flock", &StracePass::DoFlock, 0},
    {"mmap", &StracePass::DoMap, 0},
    {"chdir", &StracePass::DoFolder, kPlain},
    {"fchdir", &StracePass::DoFolder, kFd},
    {"umask", &StracePass::DoUmask, 0},
    {"clone", &StracePass::DoClone, 0},
    {"clone3", &StracePass::DoClone, 0},
    {"fork", &StracePass::DoClone, 0},
    {"vfork", &StracePass::DoClone, 0},
    {"execve", &StracePass::DoExec, 0},
    {"execveat", &StracePass::DoExec, 1},
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
