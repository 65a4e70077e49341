#include "tracefs/fs/handle.h"

#include <fcntl.h>

namespace tracefs {

Handle::~Handle() {
  for (const auto* kept : {&fd_, &buffered_fd_}) {
    const UniqueFd closed(kept->load(std::memory_order_relaxed));
    if (closed) share_.Give(uid_);
  }
  if (counted_in_ != nullptr) counted_in_->Give(uid_);
}

HandleTable::~HandleTable() {
  while (Handle* const handle = Any()) Remove(*handle);
}

Handle* HandleTable::Add(std::unique_ptr<Handle> owned) {
  Handle* handle = owned.release();
  NoteOpen(*handle);
  Insert(handle);
  return handle;
}

void HandleTable::Insert(Handle* handle) {
  Shard& shard = ShardOf(*handle);
  std::lock_guard lock(shard.mu);
  handle->next_ = shard.first;
  if (shard.first != nullptr) shard.first->previous_ = handle;
  shard.first = handle;
}

std::unique_ptr<Handle> HandleTable::Unlink(Shard& shard, Handle& handle) {
  if (handle.previous_ != nullptr) {
    handle.previous_->next_ = handle.next_;
  } else {
    shard.first = handle.next_;
  }
  if (handle.next_ != nullptr) handle.next_->previous_ = handle.previous_;
  handle.previous_ = handle.next_ = nullptr;
  NoteClosed(handle);
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

UniqueFd HandleTable::WriterOf(const Inode& inode) {
  UniqueFd found;
  ForEach([&](const Handle& handle) {
    const int fd = handle.fd_.load(std::memory_order_acquire);
    if (found || &handle.inode != &inode || fd < 0 || handle.append_only ||
        (handle.flags & O_ACCMODE) == O_RDONLY) {
      return;
    }
    found.Reset(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  });
  return found;
}

Handle* HandleTable::Any() {
  for (Shard& shard : shards_) {
    std::lock_guard lock(shard.mu);
    if (shard.first != nullptr) return shard.first;
  }
  return nullptr;
}

}  // namespace tracefs
