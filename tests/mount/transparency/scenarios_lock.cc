// fcntl(2) locks, OFD locks, flock(2), leases: within and between processes.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <deque>
#include <string>

#include "tests/mount/transparency/scenario.h"

namespace tracefs::transparency {
namespace {

int LockCall(int fd, int command, short type, off_t start, off_t length,
             struct flock* out = nullptr) {
  struct flock lock = {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = start;
  lock.l_len = length;
  const int result = ::fcntl(fd, command, &lock);
  if (out != nullptr) *out = lock;
  return result;
}

// What stands in the way; the pid only as "parent", "peer" or "none".
void GetLock(Run& run, int fd, int command, short type, off_t start,
             off_t length) {
  struct flock lock;
  const int result = LockCall(fd, command, type, start, length, &lock);
  if (result != 0 || lock.l_type == F_UNLCK) {
    run.Ret("getlk", result);
    run.Note("free");
    return;
  }
  run.Note("held: type %d start %ld len %ld by %s", lock.l_type,
           static_cast<long>(lock.l_start), static_cast<long>(lock.l_len),
           lock.l_pid == ::getppid() ? "parent"
           : lock.l_pid == -1        ? "a description"
                                     : "another");
}

void Alarm(int) {}

// A signal that interrupts.
void AlarmIn(int ms) {
  struct sigaction action = {};
  action.sa_handler = Alarm;
  ::sigaction(SIGALRM, &action, nullptr);
  const itimerval timer = {{0, 0}, {ms / 1000, (ms % 1000) * 1000}};
  ::setitimer(ITIMER_REAL, &timer, nullptr);
}

constexpr Scenario kScenarios[] = {
    {"lock.within_one_process", kAll,
     [](Run& run) {
       const int a = FD(::open("f", O_CREAT | O_RDWR, 0644));
       const int b = FD(::open("f", O_RDWR));
       CALL(LockCall(a, F_SETLK, F_WRLCK, 0, 10));
       CALL(LockCall(b, F_SETLK, F_WRLCK, 5, 10));
       GetLock(run, b, F_GETLK, F_WRLCK, 0, 0);
       CALL(LockCall(a, F_SETLK, F_UNLCK, 0, 0));
     }},
    {"lock.open_modes", kAll,
     [](Run& run) {
       WriteFile("f", "x");
       const int r = FD(::open("f", O_RDONLY));
       const int w = FD(::open("f", O_WRONLY));
       const int p = FD(::open("f", O_PATH));
       CALL(LockCall(r, F_SETLK, F_WRLCK, 0, 1));
       CALL(LockCall(r, F_SETLK, F_RDLCK, 0, 1));
       CALL(LockCall(w, F_SETLK, F_RDLCK, 0, 1));
       CALL(LockCall(w, F_SETLK, F_WRLCK, 0, 1));
       CALL(LockCall(p, F_SETLK, F_RDLCK, 0, 1));
       CALL(::flock(r, LOCK_EX | LOCK_NB));
       CALL(::flock(p, LOCK_SH | LOCK_NB));
       const int d = FD(::open(".", O_RDONLY));
       CALL(LockCall(d, F_SETLK, F_RDLCK, 0, 1));
       CALL(::flock(d, LOCK_EX | LOCK_NB));
     }},
    {"lock.ranges", kAll,
     [](Run& run) {
       const int fd = FD(::open("f", O_CREAT | O_RDWR, 0644));
       CALL(LockCall(fd, F_SETLK, F_WRLCK, -1, 1));
       CALL(LockCall(fd, F_SETLK, F_WRLCK, 10, -5));
       CALL(LockCall(fd, F_SETLK, F_WRLCK, 10, -50));
       CALL(LockCall(fd, F_SETLK, F_WRLCK, INT64_MAX, 1));
       CALL(LockCall(fd, F_SETLK, F_WRLCK, INT64_MAX, 2));
       CALL(LockCall(fd, F_SETLK, 99, 0, 1));
       CALL(::lseek(fd, 100, SEEK_SET));
       struct flock lock = {};
       lock.l_type = F_WRLCK;
       lock.l_whence = SEEK_CUR;
       lock.l_start = -10;
       lock.l_len = 5;
       CALL(::fcntl(fd, F_SETLK, &lock));
       CALL(::write(fd, "0123456789", 10));
       lock.l_whence = SEEK_END;
       CALL(::fcntl(fd, F_SETLK, &lock));
       Run::Peer peer(run, [fd](Run& side, Run::Peer&) {
         for (const off_t at : {0, 4, 5, 9, 10, 90, 94, 95, 99, 100, 105}) {
           GetLock(side, fd, F_GETLK, F_RDLCK, at, 1);
         }
       });
     }},
    {"lock.between_processes", kAll,
     [](Run& run) {
       const int fd = FD(::open("f", O_CREAT | O_RDWR, 0644));
       CALL(LockCall(fd, F_SETLK, F_WRLCK, 10, 10));
       CALL(LockCall(fd, F_SETLK, F_RDLCK, 100, 0));
       Run::Peer peer(run, [](Run& side, Run::Peer& turn) {
         const int own = PEER_FD(::open("f", O_RDWR));
         PEER_CALL(LockCall(own, F_SETLK, F_WRLCK, 15, 1));
         PEER_CALL(LockCall(own, F_SETLK, F_RDLCK, 15, 1));
         PEER_CALL(LockCall(own, F_SETLK, F_WRLCK, 0, 10));
         PEER_CALL(LockCall(own, F_SETLK, F_RDLCK, 1000, 10));
         PEER_CALL(LockCall(own, F_SETLK, F_WRLCK, 1000, 10));
         GetLock(side, own, F_GETLK, F_WRLCK, 0, 0);
         turn.Signal();
         turn.Wait();
         PEER_CALL(LockCall(own, F_SETLK, F_WRLCK, 15, 1));
       });
       peer.Wait();
       CALL(LockCall(fd, F_SETLK, F_UNLCK, 12, 6));
       GetLock(run, fd, F_GETLK, F_WRLCK, 0, 10);
       peer.Signal();
     }},
    {"lock.split_and_upgrade", kAll,
     [](Run& run) {
       const int fd = FD(::open("f", O_CREAT | O_RDWR, 0644));
       CALL(LockCall(fd, F_SETLK, F_RDLCK, 0, 100));
       CALL(LockCall(fd, F_SETLK, F_WRLCK, 40, 20));
       CALL(LockCall(fd, F_SETLK, F_UNLCK, 10, 5));
       Run::Peer peer(run, [fd](Run& side, Run::Peer&) {
         for (const off_t at : {0, 10, 14, 15, 39, 40, 59, 60, 99, 100}) {
           GetLock(side, fd, F_GETLK, F_WRLCK, at, 1);
           GetLock(side, fd, F_GETLK, F_RDLCK, at, 1);
         }
       });
     }},
    {"lock.close_of_any_descriptor_releases", kAll,
     [](Run& run) {
       const int a = FD(::open("f", O_CREAT | O_RDWR, 0644));
       const int b = FD(::open("f", O_RDONLY));
       CALL(LockCall(a, F_SETLK, F_WRLCK, 0, 0));
       CALL(::close(b));
       Run::Peer peer(run, [a](Run& side, Run::Peer&) {
         GetLock(side, a, F_GETLK, F_WRLCK, 0, 0);
       });
     }},
    {"lock.not_inherited_by_fork", kAll,
     [](Run& run) {
       const int fd = FD(::open("f", O_CREAT | O_RDWR, 0644));
       CALL(LockCall(fd, F_SETLK, F_WRLCK, 0, 0));
       Run::Peer peer(run, [fd](Run& side, Run::Peer&) {
         PEER_CALL(LockCall(fd, F_SETLK, F_WRLCK, 0, 0));
         PEER_CALL(::close(fd));
       });
       peer.Join();
       Run::Peer other(run, [fd](Run& side, Run::Peer&) {
         GetLock(side, fd, F_GETLK, F_WRLCK, 0, 0);
       });
     }},
    {"lock.released_at_exit", kAll,
     [](Run& run) {
       const int fd = FD(::open("f", O_CREAT | O_RDWR, 0644));
       {
         Run::Peer peer(run, [](Run& side, Run::Peer&) {
           const int own = PEER_FD(::open("f", O_RDWR));
           PEER_CALL(LockCall(own, F_SETLK, F_WRLCK, 0, 0));
         });
       }
       CALL(LockCall(fd, F_SETLK, F_WRLCK, 0, 0));
     }},
    {"lock.released_when_killed", kAll,
     [](Run& run) {
       const int fd = FD(::open("f", O_CREAT | O_RDWR, 0644));
       {
         Run::Peer peer(run, [](Run&, Run::Peer& turn) {
           const int own = ::open("f", O_RDWR);
           LockCall(own, F_SETLK, F_WRLCK, 0, 0);
           ::flock(own, LOCK_EX);
           turn.Signal();
           ::pause();
         });
         peer.Wait();
         CALL(LockCall(fd, F_SETLK, F_WRLCK, 0, 0));
         CALL(::flock(fd, LOCK_EX | LOCK_NB));
         ::kill(peer.pid(), SIGKILL);
       }
       CALL(LockCall(fd, F_SETLKW, F_WRLCK, 0, 0));
       CALL(::flock(fd, LOCK_EX));
     }},
    {"lock.wait_until_unlock", kAll,
     [](Run& run) {
       const int fd = FD(::open("f", O_CREAT | O_RDWR, 0644));
       CALL(LockCall(fd, F_SETLK, F_WRLCK, 0, 10));
       Run::Peer peer(run, [](Run& side, Run::Peer& turn) {
         const int own = PEER_FD(::open("f", O_RDWR));
         turn.Signal();
         PEER_CALL(LockCall(own, F_SETLKW, F_WRLCK, 5, 1));
         side.Content("f");
       });
       peer.Wait();
       peer.UntilAsleep();
       CALL(::write(fd, "written before unlock", 21));
       CALL(LockCall(fd, F_SETLK, F_UNLCK, 0, 10));
     }},
    {"lock.wait_until_close", kAll,
     [](Run& run) {
       const int fd = FD(::open("f", O_CREAT | O_RDWR, 0644));
       CALL(LockCall(fd, F_SETLK, F_WRLCK, 0, 10));
       Run::Peer peer(run, [](Run& side, Run::Peer& turn) {
         const int own = PEER_FD(::open("f", O_RDWR));
         turn.Signal();
         PEER_CALL(LockCall(own, F_SETLKW, F_RDLCK, 0, 0));
       });
       peer.Wait();
       peer.UntilAsleep();
       CALL(::close(fd));
     }},
    {"lock.wait_interrupted", kAll,
     [](Run& run) {
       const int fd = FD(::open("f", O_CREAT | O_RDWR, 0644));
       CALL(LockCall(fd, F_SETLK, F_WRLCK, 0, 10));
       CALL(::flock(fd, LOCK_EX));
       {
         Run::Peer peer(run, [](Run& side, Run::Peer&) {
           const int own = PEER_FD(::open("f", O_RDWR));
           AlarmIn(60);
           PEER_CALL(LockCall(own, F_SETLKW, F_WRLCK, 0, 10));
           AlarmIn(60);
           PEER_CALL(::flock(own, LOCK_EX));
           GetLock(side, own, F_GETLK, F_WRLCK, 0, 10);
         });
       }
       CALL(LockCall(fd, F_SETLK, F_UNLCK, 0, 10));
       CALL(LockCall(fd, F_SETLK, F_WRLCK, 0, 10));
     }},
    {"lock.wait_killed", kAll,
     [](Run& run) {
       const int fd = FD(::open("f", O_CREAT | O_RDWR, 0644));
       CALL(LockCall(fd, F_SETLK, F_WRLCK, 0, 10));
       {
         Run::Peer peer(run, [](Run&, Run::Peer& turn) {
           const int own = ::open("f", O_RDWR);
           turn.Signal();
           LockCall(own, F_SETLKW, F_WRLCK, 0, 10);
         });
         peer.Wait();
         peer.UntilAsleep();
         ::kill(peer.pid(), SIGKILL);
       }
       CALL(LockCall(fd, F_SETLK, F_UNLCK, 0, 10));
       // The dead waiter must not have got it.
       Run::Peer peer(run, [fd](Run& side, Run::Peer&) {
         PEER_CALL(LockCall(fd, F_SETLK, F_WRLCK, 0, 10));
       });
     }},
    {"lock.deadlock", kAll,
     [](Run& run) {
       const int fd = FD(::open("f", O_CREAT | O_RDWR, 0644));
       CALL(LockCall(fd, F_SETLK, F_WRLCK, 0, 1));
       Run::Peer peer(run, [](Run& side, Run::Peer& turn) {
         const int own = PEER_FD(::open("f", O_RDWR));
         PEER_CALL(LockCall(own, F_SETLK, F_WRLCK, 1, 1));
         turn.Signal();
         PEER_CALL(LockCall(own, F_SETLKW, F_WRLCK, 0, 1));
       });
       peer.Wait();
       peer.UntilAsleep();
       CALL(LockCall(fd, F_SETLKW, F_WRLCK, 1, 1));
       CALL(LockCall(fd, F_SETLK, F_UNLCK, 0, 1));
     }},
    {"lock.deadlock_of_three_over_two_files", kAll,
     [](Run& run) {
       const int a = FD(::open("a", O_CREAT | O_RDWR, 0644));
       const int b = FD(::open("b", O_CREAT | O_RDWR, 0644));
       CALL(LockCall(a, F_SETLK, F_WRLCK, 0, 1));
       Run::Peer two(run, [](Run& side, Run::Peer& turn) {
         const int a2 = ::open("a", O_RDWR);
         const int b2 = ::open("b", O_RDWR);
         PEER_CALL(LockCall(b2, F_SETLK, F_WRLCK, 0, 1));
         turn.Signal();
         PEER_CALL(LockCall(a2, F_SETLKW, F_WRLCK, 0, 1));
       });
       two.Wait();
       two.UntilAsleep();
       Run::Peer three(run, [](Run& side, Run::Peer& turn) {
         const int b3 = ::open("b", O_RDWR);
         PEER_CALL(LockCall(b3, F_SETLK, F_WRLCK, 5, 1));
         turn.Signal();
         PEER_CALL(LockCall(b3, F_SETLKW, F_WRLCK, 0, 1));
       });
       three.Wait();
       three.UntilAsleep();
       CALL(LockCall(b, F_SETLKW, F_WRLCK, 5, 1));
       CALL(LockCall(a, F_SETLK, F_UNLCK, 0, 1));
       two.Join();
       three.Join();
     }},
    {"lock.many_waiters_are_all_served", kAll,
     [](Run& run) {
       const int fd = FD(::open("f", O_CREAT | O_RDWR, 0644));
       CALL(LockCall(fd, F_SETLK, F_WRLCK, 0, 1));
       {
         std::deque<Run::Peer> peers;
         for (int i = 0; i < 16; ++i) {
           peers.emplace_back(run, [](Run&, Run::Peer& turn) {
             const int own = ::open("f", O_RDWR);
             turn.Signal();
             if (LockCall(own, F_SETLKW, F_WRLCK, 0, 1) != 0) ::_exit(9);
             // Under the lock: a counter that must not be torn.
             char c = 0;
             (void)!::pread(own, &c, 1, 10);
             ::usleep(1000);
             ++c;
             (void)!::pwrite(own, &c, 1, 10);
             LockCall(own, F_SETLK, F_UNLCK, 0, 1);
           });
         }
         for (Run::Peer& peer : peers) peer.Wait();
         SleepMs(30);
         CALL(LockCall(fd, F_SETLK, F_UNLCK, 0, 1));
       }
       char c = 0;
       CALL(::pread(fd, &c, 1, 10));
       run.Note("counted %d", c);
     }},
    {"lock.ofd", kAll,
     [](Run& run) {
       const int a = FD(::open("f", O_CREAT | O_RDWR, 0644));
       const int b = FD(::open("f", O_RDWR));
       const int c = ::dup(a);
       CALL(LockCall(a, F_OFD_SETLK, F_WRLCK, 0, 10));
       CALL(LockCall(b, F_OFD_SETLK, F_WRLCK, 5, 10));
       CALL(LockCall(c, F_OFD_SETLK, F_WRLCK, 5, 10));
       GetLock(run, b, F_OFD_GETLK, F_RDLCK, 0, 0);
       GetLock(run, b, F_GETLK, F_RDLCK, 0, 0);
       CALL(LockCall(b, F_SETLK, F_RDLCK, 0, 1));
       CALL(::close(a));
       CALL(LockCall(b, F_OFD_SETLK, F_WRLCK, 0, 1));
     }},
    {"lock.ofd_survives_fork_and_ends_with_the_last_close", kAll,
     [](Run& run) {
       const int a = FD(::open("f", O_CREAT | O_RDWR, 0644));
       const int b = FD(::open("f", O_RDWR));
       CALL(LockCall(a, F_OFD_SETLK, F_WRLCK, 0, 0));
       {
         Run::Peer peer(run, [a](Run& side, Run::Peer& turn) {
           turn.Wait();
           PEER_CALL(LockCall(a, F_OFD_SETLK, F_WRLCK, 0, 0));
         });
         CALL(::close(a));
         CALL(LockCall(b, F_OFD_SETLK, F_WRLCK, 0, 0));
         peer.Signal();
       }
       SleepMs(20);  // the last close is told without anybody waiting
       CALL(LockCall(b, F_OFD_SETLK, F_WRLCK, 0, 0));
     }},
    {"lock.ofd_wait", kAll,
     [](Run& run) {
       const int a = FD(::open("f", O_CREAT | O_RDWR, 0644));
       CALL(LockCall(a, F_OFD_SETLK, F_WRLCK, 0, 10));
       Run::Peer peer(run, [](Run& side, Run::Peer& turn) {
         const int own = PEER_FD(::open("f", O_RDWR));
         turn.Signal();
         PEER_CALL(LockCall(own, F_OFD_SETLKW, F_WRLCK, 0, 10));
       });
       peer.Wait();
       peer.UntilAsleep();
       CALL(LockCall(a, F_OFD_SETLK, F_UNLCK, 0, 10));
     }},
    {"lock.flock", kAll,
     [](Run& run) {
       const int a = FD(::open("f", O_CREAT | O_RDWR, 0644));
       const int b = FD(::open("f", O_RDONLY));
       CALL(::flock(a, LOCK_SH | LOCK_NB));
       CALL(::flock(b, LOCK_SH | LOCK_NB));
       CALL(::flock(a, LOCK_EX | LOCK_NB));
       CALL(::flock(b, LOCK_EX | LOCK_NB));
       CALL(::flock(b, LOCK_UN));
       CALL(::flock(a, LOCK_EX | LOCK_NB));
       const int c = ::dup(a);
       CALL(::flock(c, LOCK_EX | LOCK_NB));
       CALL(::flock(c, LOCK_UN));
       CALL(::flock(b, LOCK_EX | LOCK_NB));
       CALL(::flock(b, 99));
       CALL(::flock(b, LOCK_SH | LOCK_EX));
     }},
    {"lock.flock_shared_with_fork", kAll,
     [](Run& run) {
       const int a = FD(::open("f", O_CREAT | O_RDWR, 0644));
       const int b = FD(::open("f", O_RDWR));
       CALL(::flock(a, LOCK_EX));
       {
         Run::Peer peer(run, [a](Run& side, Run::Peer&) {
           PEER_CALL(::flock(a, LOCK_EX | LOCK_NB));
           PEER_CALL(::close(a));
         });
       }
       CALL(::flock(b, LOCK_EX | LOCK_NB));
       {
         Run::Peer peer(run, [a](Run& side, Run::Peer&) {
           PEER_CALL(::flock(a, LOCK_UN));
         });
       }
       CALL(::flock(b, LOCK_EX | LOCK_NB));
     }},
    {"lock.flock_wait", kAll,
     [](Run& run) {
       const int a = FD(::open("f", O_CREAT | O_RDWR, 0644));
       CALL(::flock(a, LOCK_EX));
       Run::Peer peer(run, [](Run& side, Run::Peer& turn) {
         const int own = PEER_FD(::open("f", O_RDWR));
         turn.Signal();
         PEER_CALL(::flock(own, LOCK_EX));
       });
       peer.Wait();
       peer.UntilAsleep();
       CALL(::flock(a, LOCK_UN));
     }},
    {"lock.flock_released_by_close", kAll,
     [](Run& run) {
       const int a = FD(::open("f", O_CREAT | O_RDWR, 0644));
       const int b = FD(::open("f", O_RDWR));
       CALL(::flock(a, LOCK_EX));
       CALL(::close(a));
       SleepMs(20);
       CALL(::flock(b, LOCK_EX | LOCK_NB));
     }},
    {"lock.flock_and_fcntl_are_apart", kAll,
     [](Run& run) {
       const int a = FD(::open("f", O_CREAT | O_RDWR, 0644));
       CALL(::flock(a, LOCK_EX));
       Run::Peer peer(run, [](Run& side, Run::Peer&) {
         const int own = PEER_FD(::open("f", O_RDWR));
         PEER_CALL(LockCall(own, F_SETLK, F_WRLCK, 0, 0));
         PEER_CALL(::flock(own, LOCK_SH | LOCK_NB));
       });
     }},
    {"lock.on_renamed_and_removed_file", kAll,
     [](Run& run) {
       const int a = FD(::open("f", O_CREAT | O_RDWR, 0644));
       CALL(LockCall(a, F_SETLK, F_WRLCK, 0, 0));
       CALL(::rename("f", "g"));
       {
         Run::Peer peer(run, [](Run& side, Run::Peer&) {
           const int own = PEER_FD(::open("g", O_RDWR));
           PEER_CALL(LockCall(own, F_SETLK, F_WRLCK, 0, 0));
         });
       }
       CALL(::unlink("g"));
       WriteFile("g", "another");
       Run::Peer peer(run, [](Run& side, Run::Peer&) {
         const int own = PEER_FD(::open("g", O_RDWR));
         PEER_CALL(LockCall(own, F_SETLK, F_WRLCK, 0, 0));
       });
     }},
    {"lock.through_hard_link", kAll,
     [](Run& run) {
       const int a = FD(::open("f", O_CREAT | O_RDWR, 0644));
       CALL(::link("f", "g"));
       CALL(LockCall(a, F_SETLK, F_WRLCK, 0, 0));
       Run::Peer peer(run, [](Run& side, Run::Peer&) {
         const int own = PEER_FD(::open("g", O_RDWR));
         PEER_CALL(LockCall(own, F_SETLK, F_RDLCK, 0, 0));
       });
     }},
    {"lock.lockf", kAll,
     [](Run& run) {
       const int fd = FD(::open("f", O_CREAT | O_RDWR, 0644));
       CALL(::write(fd, "0123456789", 10));
       CALL(::lseek(fd, 5, SEEK_SET));
       CALL(::lockf(fd, F_LOCK, 3));
       CALL(::lockf(fd, F_TEST, 3));
       Run::Peer peer(run, [fd](Run& side, Run::Peer&) {
         PEER_CALL(::lockf(fd, F_TEST, 1));
         PEER_CALL(::lockf(fd, F_TLOCK, 1));
         PEER_CALL(::lockf(fd, F_TEST, -5));
       });
     }},
    {"lock.locks_do_not_stop_io", kAll,
     [](Run& run) {
       const int fd = FD(::open("f", O_CREAT | O_RDWR, 0644));
       CALL(LockCall(fd, F_SETLK, F_WRLCK, 0, 0));
       Run::Peer peer(run, [](Run& side, Run::Peer&) {
         const int own = PEER_FD(::open("f", O_RDWR));
         PEER_CALL(::write(own, "free", 4));
         PEER_CALL(::ftruncate(own, 2));
         PEER_CALL(::unlink("f"));
       });
     }},
    {"lock.leases", kAll,
     [](Run& run) {
       WriteFile("f", "x");
       const int r = FD(::open("f", O_RDONLY));
       CALL(::fcntl(r, F_GETLEASE));
       CALL(::fcntl(r, F_SETLEASE, F_RDLCK));
       CALL(::fcntl(r, F_GETLEASE));
       CALL(::fcntl(r, F_SETLEASE, F_UNLCK));
       const int w = FD(::open("f", O_WRONLY));
       CALL(::fcntl(w, F_SETLEASE, F_RDLCK));
     }},
};

}  // namespace

std::span<const Scenario> LockScenarios() { return kScenarios; }

}  // namespace tracefs::transparency
