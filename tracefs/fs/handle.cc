#include "tracefs/fs/handle.h"

namespace tracefs {

Handle::~Handle() {
  const UniqueFd closed(fd_.load(std::memory_order_relaxed));
  if (closed) share_.Give(uid_);
}

HandleTable::~HandleTable() {
  while (RemoveAny() != nullptr) {
  }
}

Handle* HandleTable::Add(std::unique_ptr<Handle> owned) {
  Handle* handle = owned.release();
  Shard& shard = ShardOf(*handle);
  std::lock_guard lock(shard.mu);
  handle->next_ = shard.first;
  if (shard.first != nullptr) shard.first->previous_ = handle;
  shard.first = handle;
  return handle;
}

std::unique_ptr<Handle> HandleTable::Unlink(Shard& shard, Handle& handle) {
  if (handle.previous_ != nullptr) {
    handle.previous_->next_ = handle.next_;
  } else {
    shard.first = handle.next_;
  }
  if (handle.next_ != nullptr) handle.next_->previous_ = handle.previous_;
  handle.previous_ = handle.next_ = nullptr;
  handle.io_claim.GiveBack();
  return std::unique_ptr<Handle>(&handle);
}

std::unique_ptr<Handle> HandleTable::Remove(Handle& handle) {
  Shard& shard = ShardOf(handle);
  std::lock_guard lock(shard.mu);
  return Unlink(shard, handle);
}

void HandleTable::ForEach(const std::function<void(const Handle&)>& visit) {
  for (Shard& shard : shards_) {
    std::lock_guard lock(shard.mu);
    for (const Handle* h = shard.first; h != nullptr; h = h->next_) visit(*h);
  }
}

std::unique_ptr<Handle> HandleTable::RemoveAny() {
  for (Shard& shard : shards_) {
    std::lock_guard lock(shard.mu);
    if (shard.first != nullptr) return Unlink(shard, *shard.first);
  }
  return nullptr;
}

}  // namespace tracefs
