// Handles that a later daemon finds again (tracefs/survive/area.h).
//
// The kernel knows a handle by the number of its record, which says what to
// make again in the place of that number.
#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <vector>

#include "tracefs/fs/handle.h"

namespace tracefs {

using survive::Area;
using survive::OpenRecord;

namespace {

constexpr size_t kPlace = (sizeof(DirHandle) + 63) / 64 * 64;

Area* area = nullptr;
std::byte* places = nullptr;

uint32_t NumberOf(const void* handle) {
  const auto* const at = static_cast<const std::byte*>(handle);
  if (places == nullptr || at < places ||
      at >= places + Area::kMostOpens * kPlace) {
    return Area::kNone;
  }
  return static_cast<uint32_t>(static_cast<size_t>(at - places) / kPlace);
}

uint64_t RequestOfThread() {
  const survive::WorkSlot* const slot = Area::OfThread();
  return slot == nullptr ? 0 : slot->now.unique.load() & ~survive::kSentAgain;
}

}  // namespace

Handle* Handle::AtNumber(uint32_t number) {
  return reinterpret_cast<Handle*>(places + number * kPlace);
}

uint64_t Handle::ForKernel() const {
  const uint32_t number = NumberOf(this);
  return number == Area::kNone ? reinterpret_cast<uint64_t>(this)
                               : uint64_t{number} + 1;
}

void* Handle::operator new(size_t bytes) {
  if (area == nullptr) [[likely]]
    return ::operator new(bytes);
  const uint32_t number = area->TakeOpen();
  if (number == Area::kNone) throw std::bad_alloc();
  return places + number * kPlace;
}

void Handle::operator delete(void* handle) {
  const uint32_t number = NumberOf(handle);
  if (number == Area::kNone) {
    ::operator delete(handle);
  } else {
    area->GiveOpen(number);
  }
}

OpenRecord* Handle::Record() const {
  const uint32_t number = NumberOf(this);
  return number == Area::kNone ? nullptr : &area->open(number);
}

void Handle::NoteCaller(const LastCaller::Seen& seen) {
  OpenRecord* const record = Record();
  last_caller.Set(seen, [&] {
    constexpr auto kRelaxed = std::memory_order_relaxed;
    if (record == nullptr || (record->last_tid.load(kRelaxed) == seen.tid &&
                              record->last_uid.load(kRelaxed) == seen.uid &&
                              record->last_gid.load(kRelaxed) == seen.gid)) {
      return;
    }
    // Whenever this ends, a later daemon finds one of the two, or none.
    record->last_tid.store(0, kRelaxed);
    record->last_uid.store(seen.uid, std::memory_order_release);
    record->last_gid.store(seen.gid, std::memory_order_release);
    record->last_tid.store(seen.tid, std::memory_order_release);
  });
}

void HandleTable::KeepIn(Area& kept_in) {
  void* const memory =
      ::mmap(nullptr, Area::kMostOpens * kPlace, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  places = static_cast<std::byte*>(memory);
  area = &kept_in;
}

void HandleTable::NoteOpen(const Handle& handle) {
  OpenRecord* const record = handle.Record();
  if (record == nullptr) return;
  record->made_by = RequestOfThread();
  record->handle_id = handle.id;
  record->fd.store(handle.fd_.load());
  record->plain_fd.store(handle.buffered_fd_.load());
  record->flags = handle.flags;
  record->uid = handle.uid_;
  record->link_id = handle.link_id;
  record->io_mode = static_cast<uint8_t>(handle.io_mode);
  record->passes = handle.io_mode == IoMode::kPassthrough ||
                   handle.io_mode == IoMode::kPassthroughDirect;
  record->append_only = handle.append_only ? 1 : 0;
  record->is_dir = handle.inode.is_dir() ? 1 : 0;
  record->last_tid.store(handle.last_caller.Get().tid);
  record->node.store(handle.inode.id(), std::memory_order_release);
}

// Its RELEASE may come again: whether this is done must be known before the
// place is used for another.
void HandleTable::NoteClosed(const Handle& handle) {
  OpenRecord* const record = handle.Record();
  if (record == nullptr) return;
  survive::Once([&](bool /*again*/) {
    record->node.store(0);
    return 0;
  });
}

Status HandleTable::Restore(InodeTable& inodes, UserShares& shares,
                            UserShares& without_descriptor) {
  const auto records =
      std::min<size_t>(area->header().opens_used.load(), Area::kMostOpens);
  for (uint32_t i = 0; i < records; ++i) {
    OpenRecord& record = area->open(i);
    const uint64_t node = record.node.load();
    if (node == 0) continue;
    Inode* const inode = inodes.Find(node);
    if (inode == nullptr || inode->is_dir() != (record.is_dir != 0) ||
        record.io_mode > static_cast<uint8_t>(IoMode::kPassthroughDirect)) {
      return Status::SystemSaid(
          EUCLEAN, "what the daemon before has left about open files is wrong");
    }
    for (const auto* const fd : {&record.fd, &record.plain_fd}) {
      if (fd->load() >= 0) shares.TakeAgain(record.uid);
    }
    void* const place = places + i * kPlace;
    UniqueFd fd(record.fd.load());
    Handle* const handle =
        record.is_dir != 0
            ? ::new (place) DirHandle(record.handle_id, std::move(fd), *inode,
                                      record.flags, shares, record.uid)
            : ::new (place) Handle(record.handle_id, std::move(fd), *inode,
                                   record.flags, shares, record.uid);
    handle->buffered_fd_.store(record.plain_fd.load());
    if (record.is_dir == 0 && record.fd.load() < 0) {
      without_descriptor.TakeAgain(record.uid);
      handle->CountIn(without_descriptor);
    }
    handle->append_only = record.append_only != 0;
    handle->io_mode = static_cast<IoMode>(record.io_mode);
    if (const uint32_t tid = record.last_tid.load(); tid != 0) {
      handle->last_caller.Set({.tid = tid,
                               .uid = record.last_uid.load(),
                               .gid = record.last_gid.load(),
                               .info = {}});
    }
    // What the dead daemon had noted died with it.
    if ((record.flags & O_ACCMODE) != O_RDONLY) inode->SetUnknownWrites(true);
    if (record.is_dir == 0) {
      const bool passes = inode->io_opens().Enter(record.passes != 0);
      handle->io_claim = IoClaim(inode->io_opens(), passes);
    } else {
      // The descriptor stands wherever the dead one had read to.
      static_cast<DirHandle*>(handle)->read_before = true;
    }
    Insert(handle);
  }
  return Status::Ok();
}

// `made_by` of a handle that was left has kSentAgain, so that the next daemon
// knows as well that its look-up does not belong to the request.
void HandleTable::CloseOf(
    const std::function<bool(uint64_t unique)>& unanswered,
    InodeTable& inodes) {
  std::vector<Handle*> nameless;
  std::vector<Handle*> closed;
  std::vector<Handle*> answered;
  ForEach([&](const Handle& handle) {
    const OpenRecord* const record = handle.Record();
    if (record == nullptr || record->made_by == 0) return;
    const uint64_t unique = record->made_by & ~survive::kSentAgain;
    const bool was_left = record->made_by != unique;
    const bool comes_again = unanswered(unique);
    auto* const one = const_cast<Handle*>(&handle);
    if (was_left && !(comes_again && left_.emplace(unique, one).second)) {
      answered.push_back(one);
    } else if (comes_again && !was_left) {
      const bool has_name = (record->flags & O_TMPFILE) != O_TMPFILE;
      (has_name || record->is_dir != 0 ? closed : nameless).push_back(one);
    }
  });
  for (Handle* const one : nameless) {
    if (!left_.emplace(one->Record()->made_by, one).second) {
      closed.push_back(one);
    }
  }
  left_count_.store(left_.size());
  for (Handle* const handle : closed) Remove(*handle);
  for (Handle* const handle : answered) {
    Inode& inode = handle->inode;
    Remove(*handle);
    inodes.Release(&inode, 1);
  }
}

bool HandleTable::LeavesOf(uint64_t unique) const {
  const auto found = left_.find(unique & ~survive::kSentAgain);
  return found != left_.end() &&
         (found->second->Record()->made_by & survive::kSentAgain) == 0;
}

void HandleTable::NoteLeft() {
  for (const auto& [unique, handle] : left_) {
    handle->Record()->made_by = unique | survive::kSentAgain;
  }
}

Handle* HandleTable::TakeLeft(uint64_t unique) {
  if (left_count_.load(std::memory_order_relaxed) == 0) return nullptr;
  const std::lock_guard lock(left_mu_);
  const auto taken = left_.extract(unique & ~survive::kSentAgain);
  left_count_.store(left_.size());
  return taken ? taken.mapped() : nullptr;
}

}  // namespace tracefs
