// The lock table against three oracles: a map of bytes, the kernel's own locks
// on a scratch file (OFD, classic, flock), and the definition of a deadlock.
#include "tracefs/fs/lock_table.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tracefs/base/unique_fd.h"

namespace tracefs {
namespace {

constexpr uint64_t kFile = 7;
constexpr LockType kR = LockType::kRead;
constexpr LockType kW = LockType::kWrite;
constexpr LockType kU = LockType::kUnlock;

Lock Make(LockType type, uint64_t start, uint64_t end, uint64_t owner) {
  return {.type = type,
          .start = start,
          .end = end,
          .owner = owner,
          .handle = owner,
          .pid = static_cast<uint32_t>(owner)};
}

// "W0-9" or "R5-" or "none": what stands in the way.
std::string Text(const std::optional<Lock>& lock) {
  if (!lock) return "none";
  std::ostringstream out;
  out << (lock->type == kR ? "R" : "W") << lock->start << "-";
  if (lock->end != kLockEnd) out << lock->end;
  return out.str();
}

// What one owner holds, as another who wants everything would see it.
std::string Held(LockTable& table, uint64_t owner, uint64_t file = kFile) {
  std::string all;
  uint64_t from = 0;
  for (;;) {
    Lock wanted = Make(kW, from, kLockEnd, ~owner);
    const std::optional<Lock> found = table.Get(file, wanted);
    if (!found) break;
    if (!all.empty()) all += " ";
    all += Text(found);
    if (found->end == kLockEnd) break;
    from = found->end + 1;
  }
  return all;
}

// --- splitting and merging -------------------------------------------------

TEST(LockTableTest, LocksOfOneOwnerMergeWhereTheyTouch) {
  LockTable table;
  EXPECT_EQ(table.Set(kFile, Make(kW, 0, 9, 1)), 0);
  EXPECT_EQ(table.Set(kFile, Make(kW, 10, 19, 1)), 0);
  EXPECT_EQ(Held(table, 1), "W0-19");
  EXPECT_EQ(table.Set(kFile, Make(kW, 21, 29, 1)), 0);
  EXPECT_EQ(Held(table, 1), "W0-19 W21-29");
  EXPECT_EQ(table.Set(kFile, Make(kW, 15, kLockEnd, 1)), 0);
  EXPECT_EQ(Held(table, 1), "W0-");
  EXPECT_EQ(table.lock_count(), 1u);
}

TEST(LockTableTest, UnlockInTheMiddleSplits) {
  LockTable table;
  EXPECT_EQ(table.Set(kFile, Make(kW, 0, kLockEnd, 1)), 0);
  EXPECT_EQ(table.Set(kFile, Make(kU, 10, 19, 1)), 0);
  EXPECT_EQ(Held(table, 1), "W0-9 W20-");
  EXPECT_EQ(table.Set(kFile, Make(kR, 5, 24, 1)), 0);
  EXPECT_EQ(Held(table, 1), "W0-4 R5-24 W25-");
  EXPECT_EQ(table.Set(kFile, Make(kU, 0, kLockEnd, 1)), 0);
  EXPECT_EQ(Held(table, 1), "");
  EXPECT_EQ(table.lock_count(), 0u);
}

TEST(LockTableTest, TheLastByteIsAByteLikeAnyOther) {
  LockTable table;
  EXPECT_EQ(table.Set(kFile, Make(kW, kLockEnd, kLockEnd, 1)), 0);
  EXPECT_EQ(table.Set(kFile, Make(kW, kLockEnd - 1, kLockEnd - 1, 1)), 0);
  EXPECT_EQ(table.lock_count(), 1u);
  EXPECT_EQ(table.Set(kFile, Make(kR, 0, kLockEnd, 2)), EAGAIN);
  EXPECT_EQ(table.Set(kFile, Make(kU, kLockEnd, kLockEnd, 1)), 0);
  EXPECT_EQ(table.Set(kFile, Make(kR, kLockEnd, kLockEnd, 2)), 0);
}

TEST(LockTableTest, NonsenseRangesAreRefused) {
  LockTable table;
  EXPECT_EQ(table.Set(kFile, Make(kW, 9, 8, 1)), EINVAL);
  EXPECT_EQ(table.Set(kFile, Make(kW, 0, kLockEnd + 1, 1)), EINVAL);
  EXPECT_EQ(table.SetWait(kFile, Make(kW, 9, 8, 1), table.NewWaiter(),
                          [](int) { FAIL(); }),
            EINVAL);
  EXPECT_EQ(table.waiter_count(), 0u);
}

TEST(LockTableTest, FlockStructureConvertsBothWays) {
  struct flock c = {};
  c.l_type = F_WRLCK;
  c.l_start = 10;
  c.l_len = 0;
  c.l_pid = 42;
  Lock lock;
  EXPECT_EQ(LockFromFlock(c, &lock), 0);
  EXPECT_EQ(lock.type, kW);
  EXPECT_EQ(lock.start, 10u);
  EXPECT_EQ(lock.end, kLockEnd);
  EXPECT_EQ(lock.pid, 42u);
  c.l_len = 5;
  EXPECT_EQ(LockFromFlock(c, &lock), 0);
  EXPECT_EQ(lock.end, 14u);
  struct flock back = {};
  LockToFlock(lock, &back);
  EXPECT_EQ(back.l_type, F_WRLCK);
  EXPECT_EQ(back.l_start, 10);
  EXPECT_EQ(back.l_len, 5);
  EXPECT_EQ(back.l_pid, 42);
  LockToFlock(std::nullopt, &back);
  EXPECT_EQ(back.l_type, F_UNLCK);
  c.l_start = INT64_MAX;
  c.l_len = 1;
  EXPECT_EQ(LockFromFlock(c, &lock), 0);
  c.l_len = 2;
  EXPECT_EQ(LockFromFlock(c, &lock), EOVERFLOW);
  c.l_start = -1;
  EXPECT_EQ(LockFromFlock(c, &lock), EINVAL);
  c.l_start = 0;
  c.l_len = -1;
  EXPECT_EQ(LockFromFlock(c, &lock), EINVAL);
  c.l_len = 1;
  c.l_type = 77;
  EXPECT_EQ(LockFromFlock(c, &lock), EINVAL);
}

// Oracle 1: per owner and byte, a type.
TEST(LockTableTest, Oracle_BytesOneByOne) {
  constexpr int kBytes = 10;
  constexpr int kOwners = 3;
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    LockTable table;
    std::array<std::array<LockType, kBytes>, kOwners> model;
    for (auto& owner : model) owner.fill(kU);
    for (int step = 0; step < 60; ++step) {
      const int owner = static_cast<int>(random() % kOwners);
      int start = static_cast<int>(random() % kBytes);
      int end = static_cast<int>(random() % kBytes);
      if (start > end) std::swap(start, end);
      const auto type = static_cast<LockType>(random() % 3);
      bool conflict = false;
      for (int other = 0; other < kOwners; ++other) {
        for (int byte = start; byte <= end; ++byte) {
          const LockType theirs = model[other][byte];
          if (other != owner && type != kU && theirs != kU &&
              (type == kW || theirs == kW)) {
            conflict = true;
          }
        }
      }
      const Lock lock = Make(type, start, end, owner);
      if (type != kU) {
        ASSERT_EQ(table.Get(kFile, lock).has_value(), conflict);
      }
      ASSERT_EQ(table.Set(kFile, lock), conflict ? EAGAIN : 0);
      if (!conflict) {
        for (int b = start; b <= end; ++b) model[owner][b] = type;
      }
      // As many locks as there are runs of one type.
      size_t runs = 0;
      for (const auto& bytes : model) {
        for (int b = 0; b < kBytes; ++b) {
          if (bytes[b] != kU && (b == 0 || bytes[b - 1] != bytes[b])) ++runs;
        }
      }
      ASSERT_EQ(table.lock_count(), runs);
    }
  }
}

// --- oracle 2: the kernel --------------------------------------------------

class ScratchFile {
 public:
  ScratchFile() {
    char name[] = "/tmp/tracefs_lock_table.XXXXXX";
    fd_.Reset(::mkstemp(name));
    path_ = name;
  }
  ~ScratchFile() { ::unlink(path_.c_str()); }
  UniqueFd Open() const { return UniqueFd(::open(path_.c_str(), O_RDWR)); }

 private:
  std::string path_;
  UniqueFd fd_;
};

struct flock KernelLock(const Lock& lock) {
  struct flock k = {};
  k.l_type = lock.type == kR ? F_RDLCK : lock.type == kW ? F_WRLCK : F_UNLCK;
  k.l_whence = SEEK_SET;
  k.l_start = static_cast<off_t>(lock.start);
  k.l_len =
      lock.end == kLockEnd ? 0 : static_cast<off_t>(lock.end - lock.start + 1);
  return k;
}

Lock RandomLock(std::mt19937& random, uint64_t owner) {
  uint64_t start = random() % 20;
  uint64_t end = random() % 20;
  if (start > end) std::swap(start, end);
  if (random() % 6 == 0) end = kLockEnd;
  // Unlocking half the time keeps the file from filling up.
  const LockType type = random() % 2 == 0 ? kU : random() % 2 == 0 ? kR : kW;
  return Make(type, start, end, owner);
}

std::string GetText(int fd, int command, const Lock& wanted, bool with_pid) {
  struct flock k = KernelLock(wanted);
  if (::fcntl(fd, command, &k) != 0) return "error";
  if (k.l_type == F_UNLCK) return "none";
  Lock found;
  k.l_pid = with_pid ? k.l_pid : 0;
  LockFromFlock(k, &found);
  return Text(found) + (with_pid ? " " + std::to_string(found.pid) : "");
}

TEST(LockTableTest, Oracle_KernelOfdLocks) {
  ScratchFile file;
  std::vector<UniqueFd> fds;
  for (int i = 0; i < 4; ++i) fds.push_back(file.Open());
  LockTable table;
  std::mt19937 random(2);
  for (int step = 0; step < 20000; ++step) {
    const size_t owner = random() % fds.size();
    const Lock lock = RandomLock(random, owner);
    struct flock k = KernelLock(lock);
    const int kernel =
        ::fcntl(fds[owner].get(), F_OFD_SETLK, &k) == 0 ? 0 : errno;
    ASSERT_EQ(table.Set(kFile, lock), kernel) << "step " << step;
    Lock wanted = RandomLock(random, random() % fds.size());
    if (wanted.type == kU) wanted.type = kW;
    ASSERT_EQ(Text(table.Get(kFile, wanted)),
              GetText(fds[wanted.owner].get(), F_OFD_GETLK, wanted, false))
        << "step " << step;
  }
}

TEST(LockTableTest, Oracle_KernelFlock) {
  ScratchFile file;
  std::vector<UniqueFd> fds;
  for (int i = 0; i < 4; ++i) fds.push_back(file.Open());
  LockTable table;
  std::mt19937 random(3);
  for (int step = 0; step < 20000; ++step) {
    const size_t owner = random() % fds.size();
    const auto type = static_cast<LockType>(random() % 3);
    const int operation = (type == kR   ? LOCK_SH
                           : type == kW ? LOCK_EX
                                        : LOCK_UN) |
                          LOCK_NB;
    const int kernel = ::flock(fds[owner].get(), operation) == 0 ? 0 : errno;
    ASSERT_EQ(table.Flock(kFile, Make(type, 0, 0, owner)), kernel)
        << "step " << step;
  }
}

// A process that locks on command, for what belongs to processes.
class Locker {
 public:
  struct Request {
    int command;
    struct flock lock;
  };
  struct Reply {
    int error;
    struct flock lock;
  };

  explicit Locker(const ScratchFile& file) {
    int pair[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    socket_.Reset(pair[0]);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::close(pair[0]);
      const UniqueFd fd = file.Open();
      Request request;
      while (::read(pair[1], &request, sizeof request) == sizeof request) {
        Reply reply = {0, request.lock};
        if (::fcntl(fd.get(), request.command, &reply.lock) != 0) {
          reply.error = errno;
        }
        if (::write(pair[1], &reply, sizeof reply) != sizeof reply) break;
      }
      ::_exit(0);
    }
    ::close(pair[1]);
  }
  ~Locker() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  uint64_t pid() const { return static_cast<uint64_t>(pid_); }
  void Send(int command, const Lock& lock) {
    const Request request = {command, KernelLock(lock)};
    EXPECT_EQ(::write(socket_.get(), &request, sizeof request),
              static_cast<ssize_t>(sizeof request));
  }
  Reply Receive() {
    Reply reply = {-1, {}};
    EXPECT_EQ(::read(socket_.get(), &reply, sizeof reply),
              static_cast<ssize_t>(sizeof reply));
    return reply;
  }
  std::optional<Reply> TryReceive() {
    Reply reply;
    if (::recv(socket_.get(), &reply, sizeof reply, MSG_DONTWAIT) !=
        static_cast<ssize_t>(sizeof reply)) {
      return std::nullopt;
    }
    return reply;
  }
  Reply Call(int command, const Lock& lock) {
    Send(command, lock);
    return Receive();
  }
  // Whether the kernel lists this process as waiting for a lock:
  // "12: -> POSIX  ADVISORY  WRITE 4711 fe:00:1234 0 9".
  bool IsWaiting() const {
    std::ifstream locks("/proc/locks");
    std::string line;
    while (std::getline(locks, line)) {
      std::istringstream words(line);
      std::string number, arrow, kind, mode, type;
      uint64_t pid = 0;
      words >> number >> arrow;
      if (arrow != "->") continue;
      words >> kind >> mode >> type >> pid;
      if (pid == this->pid()) return true;
    }
    return false;
  }

 private:
  UniqueFd socket_;
  pid_t pid_ = -1;
};

TEST(LockTableTest, Oracle_KernelLocksOfProcesses) {
  ScratchFile file;
  std::deque<Locker> lockers;
  for (int i = 0; i < 3; ++i) lockers.emplace_back(file);
  LockTable table;
  std::mt19937 random(4);
  for (int step = 0; step < 3000; ++step) {
    Locker& locker = lockers[random() % lockers.size()];
    const Lock lock = RandomLock(random, locker.pid());
    ASSERT_EQ(table.Set(kFile, lock), locker.Call(F_SETLK, lock).error);
    Locker& asker = lockers[random() % lockers.size()];
    Lock wanted = RandomLock(random, asker.pid());
    if (wanted.type == kU) wanted.type = kW;
    const Locker::Reply reply = asker.Call(F_GETLK, wanted);
    const std::optional<Lock> found = table.Get(kFile, wanted);
    ASSERT_EQ(found.has_value(), reply.lock.l_type != F_UNLCK);
    if (found) {
      Lock expected;
      LockFromFlock(reply.lock, &expected);
      ASSERT_EQ(Text(found), Text(expected));
      ASSERT_EQ(found->pid, expected.pid);
    }
  }
}

// Processes that wait: each byte has at most one waiter, so that the order in
// which the kernel wakes several does not matter.
TEST(LockTableTest, Oracle_KernelBlockingAndDeadlocks) {
  if (!std::ifstream("/proc/locks")) GTEST_SKIP() << "no /proc/locks";
  constexpr int kProcesses = 4;
  constexpr uint64_t kBytes = 5;
  ScratchFile file;
  std::mt19937 random(5);
  int deadlocks = 0;
  int waits = 0;
  for (int round = 0; round < 6; ++round) {
    std::deque<Locker> lockers;
    for (int i = 0; i < kProcesses; ++i) lockers.emplace_back(file);
    LockTable table;
    std::array<std::optional<uint64_t>, kProcesses> waits_for;  // a byte
    std::array<std::optional<int>, kProcesses> finished;
    for (int step = 0; step < 120; ++step) {
      const size_t who = random() % kProcesses;
      if (waits_for[who]) continue;
      const uint64_t byte = random() % kBytes;
      const LockType type = random() % 3 == 0 ? kU : kW;
      if (type == kW && std::find(waits_for.begin(), waits_for.end(),
                                  std::optional(byte)) != waits_for.end()) {
        continue;
      }
      const Lock lock = Make(type, byte, byte, lockers[who].pid());
      const int ours =
          table.SetWait(kFile, lock, table.NewWaiter(),
                        [&finished, who](int error) { finished[who] = error; });
      lockers[who].Send(F_SETLKW, lock);
      if (ours == LockTable::kWaiting) {
        ++waits;
        waits_for[who] = byte;
        while (!lockers[who].IsWaiting()) {
          ASSERT_FALSE(lockers[who].TryReceive()) << "the kernel did not wait";
          std::this_thread::sleep_for(std::chrono::microseconds(200));
        }
      } else {
        ASSERT_EQ(lockers[who].Receive().error, ours) << "step " << step;
        if (ours == EDEADLK) ++deadlocks;
      }
      // Whoever our unlock freed, the kernel's has freed too.
      for (size_t i = 0; i < kProcesses; ++i) {
        if (!waits_for[i]) continue;
        if (finished[i]) {
          ASSERT_EQ(lockers[i].Receive().error, *finished[i]);
          finished[i].reset();
          waits_for[i].reset();
        } else {
          // /proc/locks is not read in one piece: one look may miss it.
          for (int look = 0; look < 5000 && !lockers[i].IsWaiting(); ++look) {
            std::this_thread::sleep_for(std::chrono::microseconds(200));
          }
          ASSERT_TRUE(lockers[i].IsWaiting());
        }
      }
    }
    table.Clear();
  }
  EXPECT_GT(waits, 20);
  EXPECT_GT(deadlocks, 5);
}

// --- oracle 3: what waiting and deadlock mean -------------------------------

// Random blocking requests of single-threaded owners on several files. After
// each step: nobody waits who could have the lock, everybody's fate is told
// once, and EDEADLK was given exactly where all would otherwise wait forever.
TEST(LockTableTest, Oracle_NobodyWaitsInVainOrForever) {
  constexpr uint64_t kOwners = 5;
  constexpr uint64_t kFiles = 2;
  std::mt19937 random(6);
  int deadlocks = 0;
  for (int round = 0; round < 60; ++round) {
    LockTable table;
    bool clearing = false;
    struct Pending {
      uint64_t file;
      Lock lock;
    };
    std::map<uint64_t, Pending> pending;  // by owner
    for (int step = 0; step < 120; ++step) {
      const uint64_t owner = 1 + random() % kOwners;
      if (pending.count(owner) != 0) continue;
      const uint64_t file = random() % kFiles;
      uint64_t start = random() % 6;
      uint64_t end = random() % 6;
      if (start > end) std::swap(start, end);
      const LockType type = random() % 4 == 0 ? kU : random() % 2 ? kR : kW;
      const Lock lock = Make(type, start, end, owner);
      pending[owner] = {file, lock};
      const int result =
          table.SetWait(file, lock, table.NewWaiter(), [&, owner](int e) {
            ASSERT_TRUE(clearing ? e == EIO : e == 0 || e == EDEADLK) << e;
            if (e == EDEADLK) ++deadlocks;
            ASSERT_EQ(pending.erase(owner), 1u);
          });
      if (result != LockTable::kWaiting) {
        ASSERT_TRUE(result == 0 || result == EDEADLK) << result;
        if (result == EDEADLK) ++deadlocks;
        pending.erase(owner);
      }
      ASSERT_EQ(table.waiter_count(), pending.size());
      ASSERT_LT(pending.size(), kOwners) << "all wait: undetected deadlock";
      for (const auto& [waiting, request] : pending) {
        ASSERT_TRUE(table.Get(request.file, request.lock).has_value())
            << waiting << " waits for nothing";
      }
    }
    clearing = true;
    table.Clear();
    ASSERT_TRUE(pending.empty());
  }
  EXPECT_GT(deadlocks, 50);
}

// --- waiting, one thing at a time -------------------------------------------

struct Outcome {
  std::optional<int> error;
  LockTable::Completion Callback() {
    return [this](int e) {
      EXPECT_FALSE(error.has_value()) << "told twice";
      error = e;
    };
  }
};

TEST(LockTableTest, UnlockGrantsTheOldestWaiterFirst) {
  LockTable table;
  Outcome second, third;
  ASSERT_EQ(table.Set(kFile, Make(kW, 0, 9, 1)), 0);
  EXPECT_EQ(table.SetWait(kFile, Make(kW, 0, 9, 2), table.NewWaiter(),
                          second.Callback()),
            LockTable::kWaiting);
  EXPECT_EQ(table.SetWait(kFile, Make(kW, 0, 9, 3), table.NewWaiter(),
                          third.Callback()),
            LockTable::kWaiting);
  EXPECT_EQ(table.Set(kFile, Make(kU, 0, 9, 1)), 0);
  EXPECT_EQ(second.error, 0);
  EXPECT_FALSE(third.error);
  table.ReleaseOwner(kFile, 2);
  EXPECT_EQ(third.error, 0);
  EXPECT_EQ(table.waiter_count(), 0u);
}

TEST(LockTableTest, DowngradeAdmitsReaders) {
  LockTable table;
  Outcome reader;
  ASSERT_EQ(table.Set(kFile, Make(kW, 0, 9, 1)), 0);
  ASSERT_EQ(table.SetWait(kFile, Make(kR, 5, 6, 2), table.NewWaiter(),
                          reader.Callback()),
            LockTable::kWaiting);
  EXPECT_EQ(table.Set(kFile, Make(kR, 0, 9, 1)), 0);
  EXPECT_EQ(reader.error, 0);
}

TEST(LockTableTest, AGrantThatGivesUpLocksFreesOthers) {
  LockTable table;
  Outcome two, three;
  ASSERT_EQ(table.Set(kFile, Make(kW, 0, 0, 1)), 0);
  ASSERT_EQ(table.Set(kFile, Make(kW, 5, 5, 2)), 0);
  // 3 waits for 2; 2 waits for 1 with a request that downgrades its own.
  ASSERT_EQ(table.SetWait(kFile, Make(kR, 5, 5, 3), table.NewWaiter(),
                          three.Callback()),
            LockTable::kWaiting);
  ASSERT_EQ(table.SetWait(kFile, Make(kR, 0, 9, 2), table.NewWaiter(),
                          two.Callback()),
            LockTable::kWaiting);
  EXPECT_EQ(table.Set(kFile, Make(kU, 0, 0, 1)), 0);
  EXPECT_EQ(two.error, 0);
  EXPECT_EQ(three.error, 0);
}

TEST(LockTableTest, TwoReadersWhoUpgradeAreADeadlock) {
  LockTable table;
  Outcome first;
  ASSERT_EQ(table.Set(kFile, Make(kR, 0, 9, 1)), 0);
  ASSERT_EQ(table.Set(kFile, Make(kR, 0, 9, 2)), 0);
  ASSERT_EQ(table.SetWait(kFile, Make(kW, 0, 9, 1), table.NewWaiter(),
                          first.Callback()),
            LockTable::kWaiting);
  EXPECT_EQ(table.SetWait(kFile, Make(kW, 0, 9, 2), table.NewWaiter(),
                          [](int) { FAIL(); }),
            EDEADLK);
  table.ReleaseOwner(kFile, 2);
  EXPECT_EQ(first.error, 0);
}

TEST(LockTableTest, DeadlocksAreSeenAcrossFilesAndLongChains) {
  constexpr uint64_t kChain = 50;
  LockTable table;
  std::deque<Outcome> outcomes(kChain);
  for (uint64_t i = 0; i < kChain; ++i) {
    ASSERT_EQ(table.Set(i, Make(kW, 0, 0, i)), 0);
  }
  for (uint64_t i = 0; i + 1 < kChain; ++i) {
    ASSERT_EQ(table.SetWait(i + 1, Make(kW, 0, 0, i), table.NewWaiter(),
                            outcomes[i].Callback()),
              LockTable::kWaiting);
  }
  EXPECT_EQ(table.SetWait(0, Make(kW, 0, 0, kChain - 1), table.NewWaiter(),
                          [](int) { FAIL(); }),
            EDEADLK);
  table.Clear();
  EXPECT_EQ(outcomes[0].error, EIO);
}

TEST(LockTableTest, CancelEndsAWaitOnce) {
  LockTable table;
  Outcome waiter;
  ASSERT_EQ(table.Set(kFile, Make(kW, 0, 9, 1)), 0);
  const uint64_t id = table.NewWaiter();
  ASSERT_EQ(table.SetWait(kFile, Make(kW, 0, 9, 2), id, waiter.Callback()),
            LockTable::kWaiting);
  table.Cancel(id);
  EXPECT_EQ(waiter.error, EINTR);
  table.Cancel(id);
  table.ReleaseOwner(kFile, 1);
  EXPECT_EQ(table.lock_count(), 0u);
  EXPECT_EQ(table.waiter_count(), 0u);
}

TEST(LockTableTest, CancelBeforeTheWaitIsNotLost) {
  LockTable table;
  ASSERT_EQ(table.Set(kFile, Make(kW, 0, 9, 1)), 0);
  const uint64_t id = table.NewWaiter();
  table.Cancel(id);
  EXPECT_EQ(table.SetWait(kFile, Make(kW, 0, 9, 2), id, [](int) { FAIL(); }),
            EINTR);
  EXPECT_EQ(table.waiter_count(), 0u);
}

TEST(LockTableTest, CompletionsMayCallTheTable) {
  LockTable table;
  Outcome third;
  ASSERT_EQ(table.Set(kFile, Make(kW, 0, 9, 1)), 0);
  ASSERT_EQ(table.SetWait(kFile, Make(kW, 0, 9, 2), table.NewWaiter(),
                          [&](int error) {
                            EXPECT_EQ(error, 0);
                            table.ReleaseOwner(kFile, 2);
                          }),
            LockTable::kWaiting);
  ASSERT_EQ(table.SetWait(kFile, Make(kW, 0, 9, 3), table.NewWaiter(),
                          third.Callback()),
            LockTable::kWaiting);
  table.ReleaseOwner(kFile, 1);
  EXPECT_EQ(third.error, 0);
}

TEST(LockTableTest, ReleaseHandleDropsOnlyItsLocks) {
  LockTable table;
  Outcome waiter;
  Lock ofd = Make(kW, 0, 9, 100);
  ofd.handle = 55;
  ASSERT_EQ(table.Set(kFile, ofd), 0);
  ASSERT_EQ(table.Set(kFile, Make(kW, 20, 29, 1)), 0);
  ASSERT_EQ(table.SetWait(kFile, Make(kW, 5, 5, 2), table.NewWaiter(),
                          waiter.Callback()),
            LockTable::kWaiting);
  table.ReleaseHandle(kFile, 56);
  EXPECT_FALSE(waiter.error);
  table.ReleaseHandle(kFile, 55);
  EXPECT_EQ(waiter.error, 0);
  EXPECT_EQ(table.Set(kFile, Make(kW, 20, 29, 3)), EAGAIN);
}

TEST(LockTableTest, ClearEndsWaitsAndLocks) {
  LockTable table;
  Outcome waiter;
  ASSERT_EQ(table.Set(kFile, Make(kW, 0, 9, 1)), 0);
  ASSERT_EQ(table.Flock(kFile, Make(kW, 0, 0, 1)), 0);
  ASSERT_EQ(table.Set(kFile + 1, Make(kW, 0, 9, 1)), 0);
  ASSERT_EQ(table.SetWait(kFile, Make(kW, 0, 9, 2), table.NewWaiter(),
                          waiter.Callback()),
            LockTable::kWaiting);
  table.Clear();
  EXPECT_EQ(waiter.error, EIO);
  EXPECT_EQ(table.lock_count(), 0u);
}

// --- flock(2) ----------------------------------------------------------------

TEST(LockTableTest, FlockAndFcntlDoNotSeeEachOther) {
  LockTable table;
  EXPECT_EQ(table.Flock(kFile, Make(kW, 0, 0, 1)), 0);
  EXPECT_EQ(table.Set(kFile, Make(kW, 0, kLockEnd, 2)), 0);
  EXPECT_EQ(table.Flock(kFile, Make(kR, 0, 0, 2)), EAGAIN);
  table.ReleaseOwner(kFile, 1);  // of fcntl locks only
  EXPECT_EQ(table.Flock(kFile, Make(kR, 0, 0, 2)), EAGAIN);
  table.FlockRelease(kFile, 1);
  EXPECT_EQ(table.Flock(kFile, Make(kR, 0, 0, 2)), 0);
}

TEST(LockTableTest, FailedFlockConversionLosesTheOldLock) {
  LockTable table;
  ASSERT_EQ(table.Flock(kFile, Make(kR, 0, 0, 1)), 0);
  ASSERT_EQ(table.Flock(kFile, Make(kR, 0, 0, 2)), 0);
  EXPECT_EQ(table.Flock(kFile, Make(kW, 0, 0, 1)), EAGAIN);
  EXPECT_EQ(table.lock_count(), 1u);
  EXPECT_EQ(table.Flock(kFile, Make(kW, 0, 0, 2)), 0);
}

TEST(LockTableTest, WaitingFlockConversionLetsOthersGoFirst) {
  LockTable table;
  Outcome one, two;
  ASSERT_EQ(table.Flock(kFile, Make(kR, 0, 0, 1)), 0);
  ASSERT_EQ(table.Flock(kFile, Make(kR, 0, 0, 2)), 0);
  ASSERT_EQ(table.FlockWait(kFile, Make(kW, 0, 0, 1), table.NewWaiter(),
                            one.Callback()),
            LockTable::kWaiting);
  // Not a deadlock: 1 has dropped its lock, so 2 gets what it wants.
  EXPECT_EQ(table.FlockWait(kFile, Make(kW, 0, 0, 2), table.NewWaiter(),
                            two.Callback()),
            0);
  EXPECT_FALSE(one.error);
  table.FlockRelease(kFile, 2);
  EXPECT_EQ(one.error, 0);
}

// --- limits ------------------------------------------------------------------

TEST(LockTableTest, Malicious_LimitsGiveEnolckAndHarmNothing) {
  LockTable table(
      {.locks = 10, .locks_per_file = 4, .waiters = 3, .waiters_per_file = 2});
  for (uint64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(table.Set(1, Make(kW, 2 * i, 2 * i, 1)), 0);
  }
  EXPECT_EQ(table.Set(1, Make(kW, 50, 50, 1)), ENOLCK);
  EXPECT_EQ(Held(table, 1, 1), "W0-0 W2-2 W4-4 W6-6");
  for (uint64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(table.Set(2, Make(kW, 3 * i, 3 * i + 2, i)), 0);
  }
  // A split needs a lock more.
  EXPECT_EQ(table.Set(2, Make(kU, 1, 1, 0)), ENOLCK);
  EXPECT_EQ(table.Set(3, Make(kW, 0, 2, 1)), 0);
  EXPECT_EQ(table.Set(4, Make(kW, 0, 0, 1)), 0);
  EXPECT_EQ(table.Set(5, Make(kW, 0, 0, 1)), ENOLCK) << "eleventh lock";

  Outcome a, b, c;
  EXPECT_EQ(
      table.SetWait(3, Make(kW, 0, 0, 2), table.NewWaiter(), a.Callback()),
      LockTable::kWaiting);
  EXPECT_EQ(
      table.SetWait(3, Make(kW, 0, 0, 3), table.NewWaiter(), b.Callback()),
      LockTable::kWaiting);
  EXPECT_EQ(
      table.SetWait(3, Make(kW, 0, 0, 4), table.NewWaiter(), c.Callback()),
      ENOLCK);
  EXPECT_NE(table.NewWaiter(), 0u);
  EXPECT_EQ(table.NewWaiter(), 0u);
  EXPECT_EQ(table.SetWait(4, Make(kW, 0, 0, 5), 0, c.Callback()), ENOLCK);
  table.Clear();
  EXPECT_EQ(table.lock_count(), 0u);
  EXPECT_FALSE(c.error);
}

// --- many threads ------------------------------------------------------------

// Threads that hold exclusive locks of bytes, one of them at random moments
// interrupting others: never two holders, no wait lost.
TEST(LockTableTest, Race_ExclusiveLocksStayExclusive) {
  constexpr int kThreads = 8;
  constexpr uint64_t kBytes = 4;
  constexpr int kRounds = 2000;
  LockTable table;
  std::array<std::atomic<int>, kBytes> holders{};
  std::array<std::atomic<uint64_t>, kThreads> waiting{};
  std::atomic<int> granted{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<uint32_t>(t));
      const auto owner = static_cast<uint64_t>(t + 1);
      for (int i = 0; i < kRounds; ++i) {
        const uint64_t file = random() % 3;
        uint64_t start = random() % kBytes;
        uint64_t end = random() % kBytes;
        if (start > end) std::swap(start, end);
        std::mutex mu;
        std::condition_variable told;
        std::optional<int> error;
        const uint64_t id = table.NewWaiter();
        waiting[static_cast<size_t>(t)] = id;
        int result =
            table.SetWait(file, Make(kW, start, end, owner), id, [&](int e) {
              std::lock_guard guard(mu);
              error = e;
              told.notify_one();
            });
        if (result == LockTable::kWaiting) {
          std::unique_lock lock(mu);
          told.wait(lock, [&] { return error.has_value(); });
          result = *error;
        }
        if (result == EINTR) continue;
        ASSERT_EQ(result, 0);
        ++granted;
        if (file == 0) {
          for (uint64_t b = start; b <= end; ++b) {
            ASSERT_EQ(holders[b].fetch_add(1), 0);
          }
          for (uint64_t b = start; b <= end; ++b) holders[b].fetch_sub(1);
        }
        if (random() % 2 == 0) {
          table.ReleaseOwner(file, owner);
        } else {
          ASSERT_EQ(table.Set(file, Make(kU, 0, kLockEnd, owner)), 0);
        }
      }
    });
  }
  std::thread interrupter([&] {
    std::mt19937 random(99);
    while (!stop) {
      table.Cancel(waiting[random() % kThreads]);
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  });
  for (std::thread& thread : threads) thread.join();
  stop = true;
  interrupter.join();
  EXPECT_GT(granted, kThreads * kRounds / 2);
  EXPECT_EQ(table.lock_count(), 0u);
  EXPECT_EQ(table.waiter_count(), 0u);
}

}  // namespace
}  // namespace tracefs
