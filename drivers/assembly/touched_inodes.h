// TouchedInodes: which inodes a trace has touched, in 8 bytes or so each.
// Threads: any.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "tracefs/base/hash_table.h"

namespace tracefs {

class TouchedInodes {
 public:
  // More are not told apart: their state is not kept.
  static constexpr size_t kMost = size_t{1} << 22;

  // True if it was not there yet, and there was room for it.
  bool Add(uint64_t inode);
  // As if it had not been added.
  void Remove(uint64_t inode);
  bool Has(uint64_t inode) const;

 private:
  static constexpr size_t kShards = 64;
  static constexpr size_t kMostOfShard = kMost / kShards;
  // No file has the number 0 but by accident, and then it is always touched.
  struct alignas(64) Shard {
    mutable std::mutex mutex;
    HashTable<uint64_t> inodes;  // guarded by mutex

    // Its place, or the free one where it goes.
    size_t Find(uint64_t inode) const;
  };

  static uint64_t Mix(uint64_t inode) {
    inode *= 0x9e3779b97f4a7c15;
    return inode ^ (inode >> 32);
  }
  // The low bits say which shard it is in.
  static uint64_t HashOf(uint64_t inode) { return Mix(inode) / kShards; }
  Shard& ShardOf(uint64_t inode) { return shards_[Mix(inode) % kShards]; }
  const Shard& ShardOf(uint64_t inode) const {
    return shards_[Mix(inode) % kShards];
  }

  std::array<Shard, kShards> shards_;
};

}  // namespace tracefs
