// The locks of a mount, where lock requests are traced and therefore come to
// the daemon instead of being settled inside the kernel.
//
// Semantics are those of fcntl(2) byte-range locks (classic and OFD alike: an
// owner is a number) and of flock(2), as linux/fs/locks.c has them: splitting
// and merging, conversion, deadlock detection along the owners' waits-for
// graph. The two families do not see each other.
//
// No thread ever sleeps here. A request that must wait is queued; the thread
// whose unlock frees it calls its completion, outside all locks of the table,
// so a completion may reply and may call the table again. A waiter is granted
// first come first served among those that could be granted.
//
// Threads: any. Files are spread over shards; the waits-for graph has a mutex
// of its own, taken inside a shard's and only where somebody waits.
// Memory: bounded by Limits; what goes beyond fails with ENOLCK.
#pragma once

#include <fcntl.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tracefs/survive/area.h"

namespace tracefs {

enum class LockType : uint8_t { kRead, kWrite, kUnlock };

// The last byte a lock can cover, and how "to the end of the file" is said.
inline constexpr uint64_t kLockEnd = INT64_MAX;

// A lock that is held or asked for.
struct Lock {
  LockType type = LockType::kUnlock;
  uint64_t start = 0;
  uint64_t end = kLockEnd;  // inclusive
  uint64_t owner = 0;       // FUSE's lock_owner
  uint64_t handle = 0;      // the open file it was asked through
  uint32_t pid = 0;         // what F_GETLK tells others
  // Where a later daemon finds it, while it is held.
  uint32_t record = survive::Area::kNone;
};

// From and to the C form that libfuse hands over (l_whence is SEEK_SET; l_len
// 0 means to the end). Sets type, start, end and pid only. 0, EINVAL or
// EOVERFLOW.
int LockFromFlock(const struct flock& from, Lock* lock);
void LockToFlock(const std::optional<Lock>& lock, struct flock* to);

class LockTable {
 public:
  struct Limits {
    size_t locks = size_t{1} << 20;
    size_t locks_per_file = size_t{1} << 16;
    size_t waiters = size_t{1} << 16;
    size_t waiters_per_file = size_t{1} << 12;
  };
  // Receives 0 when the lock is held, else an errno value.
  using Completion = std::function<void(int error)>;
  // From a waiting call: neither done nor failed; the completion will be, or
  // already has been, called exactly once.
  static constexpr int kWaiting = -1;

  LockTable() : LockTable(Limits()) {}
  explicit LockTable(const Limits& limits) : limits_(limits) {}

  // From now on what is held is kept for a later daemon, before the request for
  // it is answered. Requests that are not come again, waiting ones, too, so
  // that what was half done is done again. Before the first lock; `area`
  // outlives this.
  void KeepIn(survive::Area& area) { area_ = &area; }
  // What was held when the daemon before was killed, as far as `is_open`: a
  // lock is gone with the open file that it was asked through.
  void Restore(
      const std::function<bool(uint64_t file, uint64_t handle)>& is_open);
  // Remaining waiters are never completed: call Clear() first.
  ~LockTable() = default;
  LockTable(const LockTable&) = delete;
  LockTable& operator=(const LockTable&) = delete;

  // --- fcntl(2) ---

  // F_GETLK: the first lock that keeps `wanted` from being set, if any.
  std::optional<Lock> Get(uint64_t file, const Lock& wanted);

  // F_SETLK: 0, EAGAIN, ENOLCK; EINVAL if end < start.
  int Set(uint64_t file, const Lock& lock);

  // F_SETLKW: 0 or kWaiting, or EDEADLK, EINTR (cancelled before), ENOLCK,
  // EINVAL. `waiter` comes from NewWaiter() and is used up.
  int SetWait(uint64_t file, const Lock& lock, uint64_t waiter,
              Completion completion);

  // close(2) (FLUSH): drops every fcntl lock the owner has on the file. One
  // atomic load while nobody holds any lock.
  void ReleaseOwner(uint64_t file, uint64_t owner);

  // The open file itself is gone (RELEASE): drops the fcntl locks that were
  // asked for through it. Those of processes are gone by then; this is for OFD
  // locks, whose end the kernel does not report otherwise.
  void ReleaseHandle(uint64_t file, uint64_t handle);

  // --- flock(2) --- `lock.owner` is the open file; the range is ignored.
  // Converting drops the old lock first, and so may lose it.

  int Flock(uint64_t file, const Lock& lock);
  int FlockWait(uint64_t file, const Lock& lock, uint64_t waiter,
                Completion completion);
  void FlockRelease(uint64_t file, uint64_t owner);

  // --- waiting ---

  // A number to wait under, never 0; 0 if there are too many waiters. Got
  // before the waiting call, so that the interrupt handler can be set up before
  // the completion may run. Exactly one SetWait or FlockWait must follow.
  uint64_t NewWaiter();

  // Ends a wait with EINTR (FUSE INTERRUPT). If it comes before the waiting
  // call, that call fails; if it comes too late, it does nothing.
  void Cancel(uint64_t waiter);

  // --- ends ---

  // All files are forgotten: drops their locks, ends their waits with EIO.
  void Clear();

  // Held now, and waiting (or about to) now.
  size_t lock_count() const { return held_.load(std::memory_order_acquire); }
  size_t waiter_count();

 private:
  struct Waiter {
    uint64_t id;
    Lock lock;
    uint64_t blocker;  // an owner whose lock is in the way
    Completion completion;
  };
  // One family's locks on one file.
  struct Space {
    // The locks of an owner stand together, sorted, disjoint and merged; owners
    // come in the order of their first lock, which is the order F_GETLK sees.
    std::vector<Lock> held;
    std::vector<Waiter> waiters;  // oldest first
    bool empty() const { return held.empty() && waiters.empty(); }
  };
  struct File {
    Space posix;
    Space flock;
  };
  struct alignas(64) Shard {
    std::mutex mu;
    std::unordered_map<uint64_t, File> files;  // guarded by mu
  };
  // What the graph knows of a waiter.
  struct Wait {
    bool queued = false;     // else only reserved
    bool cancelled = false;  // while reserved
    uint64_t file = 0;
    uint64_t owner = 0;
    uint64_t blocker = 0;
  };
  // Completions to call once the locks are dropped.
  using Finished = std::vector<std::pair<Completion, int>>;
  enum class Family { kPosix, kFlock };

  static Space& SpaceOf(File& file, Family family) {
    return family == Family::kPosix ? file.posix : file.flock;
  }
  static const Lock* FirstConflict(const Space& space, const Lock& wanted);
  static const Lock* ConflictWith(const Space& space, const Lock& wanted,
                                  uint64_t owner);
  static void Finish(Finished& finished);

  Shard& ShardOf(uint64_t file);
  int SetOrQueue(uint64_t file, Family family, Lock lock, bool may_wait,
                 uint64_t waiter, Completion completion);
  void Release(uint64_t file, Family family, uint64_t owner);
  void EraseIfEmpty(Shard& shard, uint64_t file);
  // All under the shard's mutex.
  int Apply(uint64_t file, Family family, Space& space, const Lock& lock);
  void Wake(uint64_t file, Space& space, Family family, uint64_t owner,
            Finished* finished);
  void DropAll(File& file, Finished* finished);
  bool Keep(uint64_t file, Family family, Lock& lock);
  void Unkeep(const Lock& lock);
  bool KeepChange(uint64_t file, Family family, std::span<const Lock> before,
                  std::vector<Lock>& after);
  // Takes the graph's mutex. True, and no edge is made, if the owner would
  // wait for itself.
  int Enqueue(uint64_t file, Family family, Space& space, const Lock& lock,
              uint64_t blocker, uint64_t waiter, Completion& completion);
  bool Redirect(const Waiter& waiter, Family family, uint64_t blocker);
  void Forget(uint64_t waiter);
  // Under the graph's mutex.
  bool Deadlocks(uint64_t owner, uint64_t blocker) const;
  void ForgetLocked(uint64_t waiter);

  const Limits limits_;
  survive::Area* area_ = nullptr;  // null: nothing is kept
  std::atomic<size_t> held_{0};
  std::array<Shard, 16> shards_;

  std::mutex graph_mu_;  // taken after a shard's, never before
  // Guarded by graph_mu_.
  uint64_t last_waiter_ = 0;
  std::unordered_map<uint64_t, Wait> waits_;
  // fcntl waiters only: flock(2) detects no deadlocks.
  std::unordered_multimap<uint64_t, uint64_t> waits_of_owner_;
};

}  // namespace tracefs
