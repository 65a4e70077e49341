#include "tracefs/fs/change_order.h"

#include <algorithm>
#include <utility>

namespace tracefs {
namespace {

void Raise(std::atomic<uint64_t>& value, uint64_t to) {
  uint64_t now = value.load(std::memory_order_relaxed);
  while (now < to &&
         !value.compare_exchange_weak(now, to, std::memory_order_relaxed)) {
  }
}

}  // namespace

ChangeOrder::Lock::Lock() {
  pthread_rwlockattr_t how;
  ::pthread_rwlockattr_init(&how);
  ::pthread_rwlockattr_setkind_np(&how,
                                  PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
  ::pthread_rwlock_init(&lock, &how);
  ::pthread_rwlockattr_destroy(&how);
}

ChangeOrder::Lock::~Lock() { ::pthread_rwlock_destroy(&lock); }

void ChangeOrder::Used(uint64_t inode, uint64_t end_ns) {
  Raise(used_ns_[Hash(inode, kNumberBits)], end_ns);
}

void ChangeOrder::Held::Take(Lock& lock, Use use) {
  // The times are read and written by the holder of the lock.
  uint64_t after = 0;
  if (use == Use::kChange) {
    ::pthread_rwlock_wrlock(&lock.lock);
    after = lock.looked_ns.load(std::memory_order_relaxed);
  } else {
    ::pthread_rwlock_rdlock(&lock.lock);
  }
  after = std::max(after, lock.changed_ns.load(std::memory_order_relaxed));
  after_ns_ = std::max(after_ns_, after);
  parts_[count_++] = {&lock, use};
}

void ChangeOrder::Held::Names(ChangeOrder& order, uint64_t directory, Use use) {
  Take(Of(order.names_, directory), use);
}

void ChangeOrder::Held::Names(ChangeOrder& order, uint64_t directory,
                              uint64_t other) {
  Lock* first = &Of(order.names_, directory);
  Lock* second = &Of(order.names_, other);
  if (second < first) std::swap(first, second);
  Take(*first, Use::kChange);
  if (second != first) Take(*second, Use::kChange);
}

void ChangeOrder::Held::File(ChangeOrder& order, uint64_t inode, Use use) {
  Take(Of(order.files_, inode), use);
}

void ChangeOrder::Held::Files(ChangeOrder& order, uint64_t inode, Use use,
                              uint64_t changed) {
  Lock* first = &Of(order.files_, inode);
  Lock* second = &Of(order.files_, changed);
  if (first == second) return Take(*second, Use::kChange);
  Use of_first = use;
  Use of_second = Use::kChange;
  if (second < first) {
    std::swap(first, second);
    std::swap(of_first, of_second);
  }
  Take(*first, of_first);
  Take(*second, of_second);
}

void ChangeOrder::Held::Makes(ChangeOrder& order, uint64_t inode) {
  // The kernel has since freed the number's previous use below.
  after_ns_ = std::max(after_ns_, order.used_ns_[Hash(inode, kNumberBits)].load(
                                      std::memory_order_relaxed));
}

void ChangeOrder::Held::Release(uint64_t end_ns) {
  while (count_ != 0) {
    const Part& part = parts_[--count_];
    Raise(
        part.use == Use::kChange ? part.lock->changed_ns : part.lock->looked_ns,
        end_ns);
    ::pthread_rwlock_unlock(&part.lock->lock);
  }
}

}  // namespace tracefs
