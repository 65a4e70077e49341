// The system calls of a daemon at work, by reason (seccomp_filter.h).
//
// Found by reading what the code calls and by tracing the daemon under the
// mount suites, over both transports. Calls whose arguments are looked at as
// well are in seccomp_filter.cc.
#pragma once

#include <array>

namespace tracefs {

inline constexpr std::array kAllowedCalls = {
    // Files of the backing tree, by descriptor or single name. The daemon
    // opens by path too (/proc), but in a root directory without anything.
    "openat", "openat2", "name_to_handle_at", "close", "newfstatat", "fstat",
    "statx", "fstatfs", "statfs", "readlinkat", "faccessat", "faccessat2",
    "getdents64", "lseek", "mkdirat", "mknodat", "unlinkat", "renameat",
    "renameat2", "linkat", "symlinkat", "fchmod", "fchmodat", "fchown",
    "fchownat", "utimensat", "ftruncate", "truncate", "fallocate",
    "copy_file_range", "flock", "fadvise64", "fsync", "fdatasync",
    "sync_file_range", "syncfs", "getxattr", "setxattr", "listxattr",
    "removexattr", "fgetxattr", "fsetxattr", "flistxattr", "fremovexattr",
    // Their data, requests, replies and traces.
    "read", "readv", "pread64", "preadv", "preadv2", "write", "writev",
    "pwrite64", "pwritev", "pwritev2", "poll", "ppoll", "epoll_create1",
    "epoll_ctl", "epoll_wait", "epoll_pwait", "eventfd2", "pipe2", "dup",
    "dup2", "dup3", "select", "pselect6",
    // Sockets that were there before: process events, control, outputs.
    "accept4", "sendto", "sendmsg", "recvfrom", "recvmsg", "shutdown",
    "getsockopt", "setsockopt", "getsockname", "getpeername",
    // The caller's ids, on this thread.
    "setfsuid", "setfsgid", "setgroups", "umask", "capget", "capset", "getuid",
    "geteuid", "getgid", "getegid", "getpid", "getppid", "gettid",
    // Who the caller is.
    "pidfd_open", "getpgid", "getsid",
    // Threads, memory, time.
    "futex", "futex_waitv", "set_robust_list", "get_robust_list", "rseq",
    "membarrier", "sched_yield", "sched_getaffinity", "getcpu", "getpriority",
    "exit", "exit_group", "restart_syscall", "rt_sigaction", "rt_sigprocmask",
    "rt_sigreturn", "rt_sigtimedwait", "rt_sigpending", "sigaltstack", "brk",
    "munmap", "mremap", "madvise", "mlock", "mlock2", "munlock",
    "clock_gettime", "clock_getres", "clock_nanosleep", "nanosleep",
    "gettimeofday", "time", "times", "getrusage", "getrandom", "getrlimit",
    "uname", "sysinfo", "timerfd_create", "timerfd_settime", "timerfd_gettime",
    // The end of the watchdog.
    "wait4", "waitid"};

// Newer than libseccomp may be; their numbers are the same everywhere.
inline constexpr std::array kAllowedNumbers = {
    436,  // close_range
    449,  // futex_waitv
    451,  // cachestat
    452,  // fchmodat2
    463,  // setxattrat
    464,  // getxattrat
    465,  // listxattrat
    466,  // removexattrat
    468,  // file_getattr
    469,  // file_setattr
};

// FUSE over io_uring: the rings, until they are there (ring_limits.h), and the
// memory of their processors.
inline constexpr std::array kUringCalls = {
    "io_uring_setup", "io_uring_enter", "io_uring_register",
    "get_mempolicy",  "set_mempolicy",  "mbind"};

}  // namespace tracefs
