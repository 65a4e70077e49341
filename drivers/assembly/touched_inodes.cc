#include "drivers/assembly/touched_inodes.h"

#include <utility>

namespace tracefs {
namespace {

constexpr uint64_t kNone = 0;
constexpr uint64_t kRemoved = 1;
constexpr size_t kLeast = 64;

}  // namespace

// Where it is, or where it may be put. There is always a free place.
size_t TouchedInodes::Shard::Find(uint64_t inode) const {
  const size_t mask = places.size() - 1;
  size_t at = (Mix(inode) / kShards) & mask;
  while (places[at] != kNone && places[at] != inode) at = (at + 1) & mask;
  return at;
}

void TouchedInodes::Shard::Grow() {
  std::vector<uint64_t> old = std::exchange(
      places,
      std::vector<uint64_t>(places.empty() ? kLeast : places.size() * 2));
  used = 0;
  for (const uint64_t inode : old) {
    if (inode == kNone || inode == kRemoved) continue;
    places[Find(inode)] = inode;
    ++used;
  }
}

bool TouchedInodes::Add(uint64_t inode) {
  if (inode <= kRemoved) return false;
  Shard& shard = ShardOf(inode);
  const std::lock_guard lock(shard.mutex);
  if (shard.used * 2 >= shard.places.size()) {
    if (shard.used >= kMostOfShard) return false;
    shard.Grow();
  }
  uint64_t& place = shard.places[shard.Find(inode)];
  if (place == inode) return false;
  place = inode;
  ++shard.used;
  return true;
}

void TouchedInodes::Remove(uint64_t inode) {
  Shard& shard = ShardOf(inode);
  const std::lock_guard lock(shard.mutex);
  if (inode <= kRemoved || shard.places.empty()) return;
  uint64_t& place = shard.places[shard.Find(inode)];
  if (place == inode) place = kRemoved;  // still used, until it grows
}

bool TouchedInodes::Has(uint64_t inode) const {
  if (inode <= kRemoved) return true;
  const Shard& shard = ShardOf(inode);
  const std::lock_guard lock(shard.mutex);
  return !shard.places.empty() && shard.places[shard.Find(inode)] == inode;
}

}  // namespace tracefs
