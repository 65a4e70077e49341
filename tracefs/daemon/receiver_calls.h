// The system calls of tracefs-recv at work, by reason (seccomp_filter.h).
//
// Found by reading what the code calls and by tracing it under the suites.
// Calls whose arguments are looked at as well are in seccomp_filter.cc.
#pragma once

#include <array>

namespace tracefs {

inline constexpr std::array kReceiverCalls = {
    // Trace files, in a directory that is open; the socket that goes at the
    // end.
    "openat", "close", "fstat", "newfstatat", "pread64", "pwrite64",
    "ftruncate", "fsync", "fdatasync", "fadvise64", "unlinkat", "faccessat",
    "faccessat2", "lseek",
    // Which traces have to go.
    "getdents64", "fstatfs",
    // Senders, by sockets that are there, and what is printed.
    "accept4", "read", "readv", "recvfrom", "recvmsg", "write", "writev",
    "sendto", "sendmsg", "shutdown", "setsockopt", "getsockopt", "getsockname",
    "getpeername", "poll", "ppoll", "epoll_create1", "epoll_ctl", "epoll_wait",
    "epoll_pwait", "eventfd2",
    // Threads, memory, time.
    "futex", "set_robust_list", "rseq", "membarrier", "sched_yield",
    "sched_getaffinity", "getcpu", "exit", "exit_group", "restart_syscall",
    "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigpending",
    "sigaltstack", "brk", "munmap", "mremap", "madvise", "mlock", "mlock2",
    "munlock", "clock_gettime", "clock_getres", "clock_nanosleep", "nanosleep",
    "gettimeofday", "time", "getrandom", "getrusage", "getrlimit", "uname",
    "sysinfo", "getpid", "gettid", "getuid", "geteuid", "getgid", "getegid",
    "capget"};

}  // namespace tracefs
