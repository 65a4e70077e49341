#include "drivers/assembly/touched_inodes.h"

namespace tracefs {

size_t TouchedInodes::Shard::Find(uint64_t inode) const {
  return inodes.Find(HashOf(inode),
                     [inode](uint64_t known) { return known == inode; });
}

bool TouchedInodes::Add(uint64_t inode) {
  if (inode == 0) return false;
  Shard& shard = ShardOf(inode);
  const std::lock_guard lock(shard.mutex);
  const size_t place = shard.Find(inode);
  if (!shard.inodes.IsFree(place) || shard.inodes.size() >= kMostOfShard) {
    return false;
  }
  shard.inodes.PutIn(place, inode, HashOf);
  return true;
}

void TouchedInodes::Remove(uint64_t inode) {
  if (inode == 0) return;
  Shard& shard = ShardOf(inode);
  const std::lock_guard lock(shard.mutex);
  const size_t place = shard.Find(inode);
  if (!shard.inodes.IsFree(place)) shard.inodes.TakeOut(place, HashOf);
}

bool TouchedInodes::Has(uint64_t inode) const {
  if (inode == 0) return true;
  const Shard& shard = ShardOf(inode);
  const std::lock_guard lock(shard.mutex);
  return !shard.inodes.IsFree(shard.Find(inode));
}

}  // namespace tracefs
