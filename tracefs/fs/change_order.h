// ChangeOrder: lets the recorded times of operations say which of them took
// effect first, for traces that are to be replayed (STR_REPLAY).
//
// An operation holds what it reads or changes, from before its calls below
// until its end is known; and its recorded begin is later than the recorded end
// of every conflicting operation that held the same before. So the times of two
// conflicting operations never overlap, and sorting by begin gives the order in
// which the directory below saw them. Changes made below, not through the
// mount, are not ordered.
//
// It can hold the names in a directory, and the attributes and contents of a
// file: both by inode number, many of which share a lock. After names an
// operation may hold files, but not the other way round, so that no circle of
// waits can form.
//
// A number is a file's for as long as the kernel knows it; then the store may
// give it to another one. The operation that makes the new file may have begun
// long before, and is recorded as if it began after the last use of the
// previous file (Used, Makes): so a number means one file from one creation to
// the next.
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tracefs {

class ChangeOrder {
 public:
  // Readers do not exclude each other.
  enum class Use : uint8_t { kLook, kChange };

  ChangeOrder() = default;
  ChangeOrder(const ChangeOrder&) = delete;
  ChangeOrder& operator=(const ChangeOrder&) = delete;

  class Held;

  // An operation on that file has ended. Before its caller is answered: later
  // the number may be another's.
  void Used(uint64_t inode, uint64_t end_ns);

 private:
  static constexpr int kLockBits = 8;
  // Many more: making a file is recorded late because of others that share its
  // place.
  static constexpr int kNumberBits = 12;

  // Like std::shared_mutex, except that readers cannot starve a writer.
  struct alignas(64) Lock {
    Lock();
    ~Lock();
    pthread_rwlock_t lock;
    // When the last one ended that held it; of CLOCK_MONOTONIC.
    std::atomic<uint64_t> changed_ns{0};
    std::atomic<uint64_t> looked_ns{0};
  };
  using Locks = std::array<Lock, size_t{1} << kLockBits>;

  static uint64_t Hash(uint64_t inode, int bits) {
    return (inode * 0x9e3779b97f4a7c15) >> (64 - bits);
  }
  static Lock& Of(Locks& locks, uint64_t inode) {
    return locks[Hash(inode, kLockBits)];
  }

  Locks names_;
  Locks files_;
  // When the last operation on a file ended.
  std::array<std::atomic<uint64_t>, size_t{1} << kNumberBits> used_ns_{};
};

// What one operation holds. Threads: the one that made it.
class ChangeOrder::Held {
 public:
  Held() = default;
  ~Held() { Release(0); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  // Waits until it can be held. Names once, then files, once.
  void Names(ChangeOrder& order, uint64_t directory, Use use);
  // The names of two directories, to be changed.
  void Names(ChangeOrder& order, uint64_t directory, uint64_t other);
  void File(ChangeOrder& order, uint64_t inode, Use use);
  // Two files, the second one to be changed.
  void Files(ChangeOrder& order, uint64_t inode, Use use, uint64_t changed);
  // It has made a file with that number, which no other operation can know yet.
  void Makes(ChangeOrder& order, uint64_t inode);

  // The begin to record for an operation that began at `begin_ns`.
  uint64_t BeginOf(uint64_t begin_ns) const {
    return begin_ns > after_ns_ ? begin_ns : after_ns_ + 1;
  }
  // The operation has ended then; 0: it does not count.
  void Release(uint64_t end_ns);

 private:
  struct Part {
    Lock* lock;
    Use use;
  };
  void Take(Lock& lock, Use use);

  std::array<Part, 4> parts_;  // uninitialised until used
  uint32_t count_ = 0;
  uint64_t after_ns_ = 0;
};

}  // namespace tracefs
