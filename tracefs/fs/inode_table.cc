#include "tracefs/fs/inode_table.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string>
#include <thread>

#include "tracefs/event/name_matcher.h"

namespace tracefs {
namespace {

template <typename ShardT, Inode* Inode::*kNext, typename HashOf>
void Grow(ShardT& shard, HashOf hash_of) {
  std::vector<Inode*> bigger(shard.buckets.size() * 2);
  for (Inode* inode : shard.buckets) {
    while (inode != nullptr) {
      Inode* const next = inode->*kNext;
      Inode*& head = bigger[hash_of(*inode) & (bigger.size() - 1)];
      inode->*kNext = head;
      head = inode;
      inode = next;
    }
  }
  shard.buckets = std::move(bigger);
}

}  // namespace

uint64_t InodeTable::KeyHash(dev_t device, ino_t number) {
  uint64_t x = number * 0x9e3779b97f4a7c15u ^ device * 0xc2b2ae3d27d4eb4fu;
  x ^= x >> 32;
  return x;
}

namespace {

// What `slot` points to, made now if there is none yet.
template <typename T>
T& MadeOnce(std::atomic<T*>& slot) {
  if (T* known = slot.load(std::memory_order_acquire)) return *known;
  auto made = std::make_unique<T>();
  T* expected = nullptr;
  if (slot.compare_exchange_strong(expected, made.get())) {
    return *made.release();
  }
  return *expected;  // another request was first
}

}  // namespace

PageOrder& Inode::MakePageOrder() { return MadeOnce(page_order_); }
WriteNotes& Inode::MakeWriteNotes() { return MadeOnce(write_notes_); }

InodeTable::~InodeTable() {
  // No FORGETs come on unmount (linux/fs/fuse/inode.c, fuse_evict_inode).
  for (IdShard& shard : by_id_) {
    for (Inode* inode : shard.buckets) {
      while (inode != nullptr) {
        Inode* const next = inode->next_by_id_;
        delete inode;
        inode = next;
      }
    }
  }
}

void InodeTable::AddOutput(dev_t device, ino_t inode) {
  auto free = std::find_if(outputs_.begin(), outputs_.end(), [](auto& key) {
    return key.inode.load(std::memory_order_relaxed) == 0;
  });
  if (free == outputs_.end()) {
    free =
        outputs_.begin() +
        static_cast<ptrdiff_t>(outputs_added_.fetch_add(1) % outputs_.size());
  }
  free->device.store(device, std::memory_order_relaxed);
  free->inode.store(inode, std::memory_order_release);
}

void InodeTable::RemoveOutput(dev_t device, ino_t inode) {
  for (OutputKey& key : outputs_) {
    if (key.inode.load(std::memory_order_relaxed) == inode &&
        key.device.load(std::memory_order_relaxed) == device) {
      key.inode.store(0, std::memory_order_release);
    }
  }
}

bool InodeTable::IsOutput(dev_t device, ino_t inode) const {
  return std::any_of(outputs_.begin(), outputs_.end(), [&](const auto& key) {
    return key.inode.load(std::memory_order_acquire) == inode &&
           key.device.load(std::memory_order_relaxed) == device;
  });
}

Inode* InodeTable::InsertRoot(UniqueFd fd, const struct stat& st) {
  own_next_id_.store(1);
  BackingFile file;
  file.fd = std::move(fd);
  return AcquireOrInsert(std::move(file), st);
}

Inode* InodeTable::FindLocked(const IdShard& shard, uint64_t id) const {
  Inode* inode = shard.buckets[(id / kShards) & (shard.buckets.size() - 1)];
  while (inode != nullptr && inode->id_ != id) inode = inode->next_by_id_;
  return inode;
}

Inode* InodeTable::Find(uint64_t id) const {
  const IdShard& shard = IdShardOf(id);
  std::lock_guard lock(shard.mu);
  return FindLocked(shard, id);
}

Inode* InodeTable::Acquire(dev_t device, ino_t number) {
  const uint64_t hash = KeyHash(device, number);
  KeyShard& shard = KeyShardOf(hash);
  std::lock_guard lock(shard.mu);
  Inode* inode = shard.buckets[(hash / kShards) & (shard.buckets.size() - 1)];
  while (inode != nullptr &&
         (inode->number_ != number || inode->device_ != device)) {
    inode = inode->next_by_key_;
  }
  if (inode != nullptr) {
    ++inode->nlookup_;
    Recount(*inode, 1);
  }
  return inode;
}

void InodeTable::CountLookup(Inode& inode) {
  KeyShard& shard = KeyShardOf(KeyHash(inode.device_, inode.number_));
  std::lock_guard lock(shard.mu);
  ++inode.nlookup_;
  Recount(inode, 1);
}

void InodeTable::InsertById(Inode* inode) {
  IdShard& shard = IdShardOf(inode->id_);
  std::lock_guard lock(shard.mu);
  if (++shard.size > shard.buckets.size()) {
    Grow<IdShard, &Inode::next_by_id_>(
        shard, [](const Inode& i) { return i.id_ / kShards; });
  }
  Inode*& head =
      shard.buckets[(inode->id_ / kShards) & (shard.buckets.size() - 1)];
  inode->next_by_id_ = head;
  head = inode;
}

void InodeTable::InsertByKey(KeyShard& shard, uint64_t hash, Inode* inode) {
  if (++shard.size > shard.buckets.size()) {
    Grow<KeyShard, &Inode::next_by_key_>(shard, [](const Inode& i) {
      return KeyHash(i.device_, i.number_) / kShards;
    });
  }
  Inode*& head = shard.buckets[(hash / kShards) & (shard.buckets.size() - 1)];
  inode->next_by_key_ = head;
  head = inode;
}

Inode* InodeTable::AcquireOrInsert(BackingFile file, const struct stat& st) {
  if (lasting_ids_ == nullptr) return Insert(std::move(file), st);
  const std::lock_guard lock(lasting_mu_);
  Inode* const known = Acquire(st.st_dev, st.st_ino);
  if (known == nullptr) return Insert(std::move(file), st);
  if (file.fd) fds_left_.fetch_add(1, std::memory_order_relaxed);
  return known;
}

uint64_t InodeTable::NewId(const BackingFile& file, const struct stat& st) {
  if (lasting_ids_ == nullptr) {
    return next_id_->fetch_add(1, std::memory_order_relaxed);
  }
  const CompactHandle made =
      file.handle ? CompactHandle() : CompactHandle::Of(file.fd.get(), "");
  const uint64_t id = lasting_ids_->IdOf(file.handle ? file.handle : made, st);
  // One that is about to go leaves in a moment. One that another file has taken
  // the place of stays as long as the kernel uses it.
  constexpr int kTries = 1000;
  for (int i = 0; id != 0 && i < kTries; ++i) {
    if (Find(id) == nullptr) {
      lasting_ids_->GaveOut(id);
      return id;
    }
    std::this_thread::yield();
  }
  uint64_t passing = lasting_ids_->PassingId();
  while (passing == 0 || Find(passing) != nullptr) {
    passing = lasting_ids_->PassingId();
  }
  return passing;
}

UniqueFd InodeTable::OpenById(uint64_t id) {
  const CompactHandle handle = lasting_ids_->HandleOf(id);
  if (handle && mount_) return handle.Open(mount_.get(), O_PATH | O_NOFOLLOW);
  UniqueFd known = Descriptor(id);
  if (!known) errno = ESTALE;
  return known;
}

Inode* InodeTable::Insert(BackingFile file, const struct stat& st) {
  // Made outside the lock; given up if another thread was first.
  const uint64_t id = NewId(file, st);
  auto fresh = std::make_unique<Inode>(id, std::move(file), st);
  fresh->is_output_ = IsOutput(fresh->device_, fresh->number_);
  // First by id: once it can be found by key, its id is already known.
  InsertById(fresh.get());
  const uint64_t hash = KeyHash(st.st_dev, st.st_ino);
  KeyShard& shard = KeyShardOf(hash);
  Inode* known;
  {
    std::lock_guard lock(shard.mu);
    known = shard.buckets[(hash / kShards) & (shard.buckets.size() - 1)];
    while (known != nullptr &&
           (known->number_ != st.st_ino || known->device_ != st.st_dev)) {
      known = known->next_by_key_;
    }
    if (known == nullptr) {
      InsertByKey(shard, hash, fresh.get());
      fresh->nlookup_ = 1;
      if (area_ != nullptr) Record(*fresh);
      if (fresh->fd_.load(std::memory_order_relaxed) < 0) {
        has_unpinned_.store(true, std::memory_order_relaxed);
      }
      size_.fetch_add(1, std::memory_order_relaxed);
      return fresh.release();
    }
    ++known->nlookup_;
    Recount(*known, 1);
  }
  Destroy(fresh.release());
  return known;
}

void InodeTable::Release(Inode* inode, uint64_t count) {
  DropRefs(inode, 0, count);
}

// Takes an inode out of the table of keys; the shard's lock is held.
void InodeTable::UnlinkKey(KeyShard& shard, uint64_t hash, Inode* inode) {
  Inode** at = &shard.buckets[(hash / kShards) & (shard.buckets.size() - 1)];
  while (*at != inode) at = &(*at)->next_by_key_;
  *at = inode->next_by_key_;
  --shard.size;
}

void InodeTable::Supersede(Inode* inode) {
  const uint64_t hash = KeyHash(inode->device_, inode->number_);
  {
    KeyShard& shard = KeyShardOf(hash);
    std::lock_guard lock(shard.mu);
    if (!inode->superseded_) {
      inode->superseded_ = true;
      UnlinkKey(shard, hash, inode);
    }
  }
  DropRefs(inode, 0, 1);
}

int& LostFdError() {
  thread_local int error = ESTALE;
  return error;
}

bool InodeTable::TakeFd() {
  if (fds_left_.fetch_sub(1, std::memory_order_relaxed) > 0) return true;
  fds_left_.fetch_add(1, std::memory_order_relaxed);
  return false;
}

BackingFile InodeTable::Hold(UniqueFd fd, bool named) {
  BackingFile file;
  if (!TakeFd()) {
    // Even if it cannot be opened: it distinguishes files with the same number.
    file.handle = CompactHandle::Of(fd.get(), "");
    if (named || (file.handle && mount_)) return file;
    fds_left_.fetch_sub(1, std::memory_order_relaxed);
  }
  file.fd = std::move(fd);
  return file;
}

BackingFd InodeTable::Open(Inode& inode) {
  const int held = inode.fd_.load(std::memory_order_acquire);
  if (held >= 0) return BackingFd(held);
  UniqueFd opened = OpenAgain(inode);
  if (!opened) {
    LostFdError() = errno;
    return BackingFd(-1);
  }
  if (!TakeFd()) return BackingFd(std::move(opened));
  return BackingFd(Keep(inode, std::move(opened)));
}

UniqueFd InodeTable::OpenByHandle(const Inode& inode, int flags) const {
  if (mount_ && inode.handle_ &&
      inode.fd_.load(std::memory_order_acquire) < 0) {
    return inode.handle_.Open(mount_.get(), flags);
  }
  errno = ENOTSUP;
  return {};
}

UniqueFd InodeTable::OpenAgain(const Inode& inode) const {
  return mount_ && inode.handle_ ? inode.handle_.Open(mount_.get())
                                 : OpenByName(inode.id_);
}

// A rename is noted only after it was done: until then the old name leads
// nowhere.
UniqueFd InodeTable::OpenByName(uint64_t id) const {
  // The rename may be delayed before it is noted.
  constexpr int kTries = 50;
  UniqueFd fd;
  for (int i = 0; i < kTries; ++i) {
    fd = TryOpenByName(id);
    if (fd || errno != ESTALE) return fd;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  errno = ESTALE;
  return fd;
}

// Down from the nearest directory that is held otherwise.
UniqueFd InodeTable::TryOpenByName(uint64_t id) const {
  constexpr size_t kMostNames = 4096;
  std::vector<std::string> names;
  UniqueFd at;
  dev_t device = 0;
  ino_t number = 0;
  for (uint64_t next = id; !at;) {
    const IdShard& shard = IdShardOf(next);
    std::lock_guard lock(shard.mu);
    const Inode* inode = FindLocked(shard, next);
    if (inode == nullptr || names.size() > kMostNames) {
      errno = ESTALE;
      return {};
    }
    if (next == id) {
      device = inode->device_;
      number = inode->number_;
    }
    if (const int fd = inode->fd_.load(std::memory_order_acquire); fd >= 0) {
      at.Reset(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
      if (!at) return {};
    } else if (mount_ && inode->handle_) {
      at = inode->handle_.Open(mount_.get());
      if (!at) return {};
    } else {
      std::lock_guard stripe(Stripe(next));
      if (inode->link_.parent == nullptr) {
        errno = ESTALE;
        return {};
      }
      names.emplace_back(inode->link_.name.view());
      next = inode->link_.parent->id_;
    }
  }
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    at.Reset(
        ::openat(at.get(), name->c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!at) {
      if (errno == ENOENT || errno == ENOTDIR) errno = ESTALE;
      return {};
    }
  }
  struct stat st;
  if (::fstatat(at.get(), "", &st, AT_EMPTY_PATH) != 0) return {};
  if (st.st_dev != device || st.st_ino != number || !IsHandleOf(id, at)) {
    errno = ESTALE;
    return {};
  }
  return at;
}

// Whether `file` is the one that the inode represents, and not a later one with
// the same number. Yes where there are no handles.
bool InodeTable::IsHandleOf(uint64_t id, const UniqueFd& file) const {
  const CompactHandle found = CompactHandle::Of(file.get(), "");
  const IdShard& shard = IdShardOf(id);
  std::lock_guard lock(shard.mu);
  const Inode* inode = FindLocked(shard, id);
  return inode != nullptr && (!inode->handle_ || inode->handle_ == found);
}

void InodeTable::Pin(Inode& inode) {
  if (inode.fd_.load(std::memory_order_acquire) >= 0 || !MayPin()) return;
  // A file that the kernel holds can be opened by its handle without a name.
  if (inode.backing_id() > 0 && mount_ && inode.handle_) return;
  UniqueFd opened = OpenAgain(inode);
  if (!opened) return;
  // Beyond the budget if need be: few files are unlinked while in use.
  fds_left_.fetch_sub(1, std::memory_order_relaxed);
  Keep(inode, std::move(opened));
}

// Makes `fd`, already charged to the budget, the inode's descriptor.
int InodeTable::Keep(Inode& inode, UniqueFd fd) {
  int expected = -1;
  if (inode.fd_.compare_exchange_strong(expected, fd.get())) {
    NoteChange(inode);
    return fd.Release();
  }
  fds_left_.fetch_add(1, std::memory_order_relaxed);
  return expected;  // another request was first
}

void InodeTable::AddRef(Inode* inode) {
  KeyShard& shard = KeyShardOf(KeyHash(inode->device_, inode->number_));
  std::lock_guard lock(shard.mu);
  ++inode->refs_;
}

void InodeTable::DropRefs(Inode* inode, uint32_t refs, uint64_t nlookup) {
  const uint64_t hash = KeyHash(inode->device_, inode->number_);
  KeyShard& shard = KeyShardOf(hash);
  {
    std::lock_guard lock(shard.mu);
    inode->refs_ -= refs;
    // The count is the kernel's; it cannot be trusted to be no larger.
    const uint64_t known = std::min(nlookup, inode->nlookup_);
    inode->nlookup_ -= known;
    if (known != 0) Recount(*inode, -static_cast<int64_t>(known));
    if (inode->refs_ != 0 || inode->nlookup_ != 0) return;
    if (!inode->superseded_) UnlinkKey(shard, hash, inode);
    Unrecord(*inode);
  }
  size_.fetch_sub(1, std::memory_order_relaxed);
  Destroy(inode);
}

// Removes an inode that is not (or no longer) in the key table from the id
// table and frees it. Iterative: a chain of directories may go with its last
// file.
void InodeTable::Destroy(Inode* inode) {
  {
    IdShard& shard = IdShardOf(inode->id_);
    std::lock_guard lock(shard.mu);
    Inode** at =
        &shard.buckets[(inode->id_ / kShards) & (shard.buckets.size() - 1)];
    while (*at != inode) at = &(*at)->next_by_id_;
    *at = inode->next_by_id_;
    --shard.size;
  }
  Inode* const parent = inode->link_.parent;
  const std::unique_ptr<std::vector<Inode::Link>> more =
      std::move(inode->more_links_);
  if (const int32_t id = inode->backing_id(); id > 0) backing_.Close(id);
  const int fd = inode->fd_.load(std::memory_order_relaxed);
  if (fd >= 0) {
    ::close(fd);
    fds_left_.fetch_add(1, std::memory_order_relaxed);
  }
  delete inode;
  if (more) {
    for (const Inode::Link& link : *more) DropRefs(link.parent, 1, 0);
  }
  if (parent != nullptr) DropRefs(parent, 1, 0);
}

bool InodeTable::Stat(uint64_t id, struct stat* st) {
  {
    const IdShard& shard = IdShardOf(id);
    std::lock_guard lock(shard.mu);
    Inode* inode = FindLocked(shard, id);
    if (inode == nullptr) return false;
    if (inode->fd_.load(std::memory_order_acquire) >= 0 ||
        (mount_ && inode->handle_)) {
      return ::fstatat(Open(*inode).get(), "", st, AT_EMPTY_PATH) == 0;
    }
  }
  const UniqueFd opened = OpenByName(id);
  return opened && ::fstatat(opened.get(), "", st, AT_EMPTY_PATH) == 0;
}

UniqueFd InodeTable::Descriptor(uint64_t id) {
  const IdShard& shard = IdShardOf(id);
  std::lock_guard lock(shard.mu);
  Inode* inode = FindLocked(shard, id);
  if (inode == nullptr) return {};
  if (inode->fd_.load(std::memory_order_acquire) < 0 &&
      !(mount_ && inode->handle_)) {
    return {};
  }
  const BackingFd fd = Open(*inode);
  return UniqueFd(fd.get() < 0 ? -1 : ::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
}

}  // namespace tracefs
