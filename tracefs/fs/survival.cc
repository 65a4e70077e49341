// FileSystem: what a later daemon takes over (tracefs/survive).
#include <fcntl.h>
#include <linux/fuse.h>

#include <array>
#include <cstring>
#include <unordered_map>

#include "tracefs/fs/file_system.h"
#include "tracefs/fs/left_file.h"

namespace tracefs {

using survive::Area;
using survive::WorkSlot;

namespace {

// At `at` of a message; false if it is not that long.
template <typename T>
bool ReadAt(ByteSpan message, size_t at, T* value) {
  if (message.size() < at + sizeof *value) return false;
  std::memcpy(value, message.data() + at, sizeof *value);
  return true;
}

}  // namespace

void FileSystem::KeepIn(Area& area) {
  area_ = &area;
  next_handle_id_ = &area.header().next_handle;
  inodes_.KeepIn(area);
  HandleTable::KeepIn(area);
  locks_.KeepIn(area);
  area.Use();
}

void FileSystem::NoteAgreed(const fuse_conn_info& conn) {
  if (area_ == nullptr) return;
  const std::array<uint64_t, 8> now = {
    1,
    conn.want,
#if TRACEFS_FUSE_AT_LEAST(17)
    conn.want_ext,
    conn.no_interrupt,
#else
    0,
    0,
#endif
    conn.max_write,
    conn.max_read,
    conn.max_readahead,
    conn.proto_minor
  };
  auto& agreed = area_->header().agreed;
  if (agreed[0] == 0) {
    agreed = now;
  } else {
    agrees_ = agreed == now;
  }
}

Status FileSystem::Restore() {
  area_->BeFirst();
  area_->FindFree();
  inodes_.Restore();
  if (Status s =
          handles_.Restore(inodes_, open_files_, opens_without_descriptor_);
      !s.ok()) {
    return s;
  }
  std::unordered_map<uint64_t, uint64_t> open;  // the node, by handle
  handles_.ForEach([&](const Handle& handle) {
    open.emplace(handle.id, handle.inode.id());
  });
  locks_.Restore([&](uint64_t file, uint64_t handle) {
    const auto found = open.find(handle);
    return found != open.end() && found->second == file;
  });
  return Status::Ok();
}

void FileSystem::Forget(ByteSpan message, WorkSlot& slot) {
  fuse_in_header header{};
  if (!ReadAt(message, 0, &header)) return;
  size_t at = sizeof header;
  uint32_t count = 1;
  if (header.opcode == FUSE_BATCH_FORGET) {
    if (!ReadAt(message, at, &count)) return;
    at += 2 * sizeof count;
  }
  for (uint32_t i = slot.items.load(std::memory_order_relaxed); i < count;
       ++i) {
    fuse_forget_one one{};
    if (header.opcode == FUSE_BATCH_FORGET) {
      if (!ReadAt(message, at + i * sizeof one, &one)) return;
    } else {
      one.nodeid = header.nodeid;
      if (!ReadAt(message, at, &one.nlookup)) return;
    }
    // Done, if this ends here: better one too many is kept.
    slot.items.store(i + 1, std::memory_order_release);
    if (one.nodeid <= 1) continue;
    if (Inode* const inode = inodes_.Find(one.nodeid)) {
      inodes_.Release(inode, one.nlookup);
    }
  }
}

// A FORGET that a dead daemon had begun with, or had only read.
void FileSystem::FinishForget(WorkSlot& slot) {
  const uint32_t buffer = slot.forgets.load();
  if (buffer == 0 || buffer > Area::kReaders + 1) return;
  const std::byte* const begin = area_->buffer(buffer - 1);
  fuse_in_header header{};
  std::memcpy(&header, begin, sizeof header);
  if ((header.opcode == FUSE_FORGET || header.opcode == FUSE_BATCH_FORGET) &&
      header.len <= Area::kBufferBytes) {
    Forget({begin, header.len}, slot);
  }
  slot.forgets.store(0);
}

void FileSystem::FinishForgets() {
  for (WorkSlot* const slot : area_->left_slots()) FinishForget(*slot);
}

void FileSystem::TakeOverRequests(
    const std::function<bool(uint64_t unique)>& unanswered) {
  handles_.CloseOf(unanswered, inodes_);
  const auto comes_again = [&](const survive::Outcome& outcome) {
    const uint64_t unique = outcome.unique.load() & ~survive::kSentAgain;
    return unique != 0 && unanswered(unique);
  };
  // What comes again must be known before anything that led to it is gone.
  for (const WorkSlot* const slot : area_->left_slots()) {
    const survive::Outcome& now = slot->now;
    if (comes_again(now) &&
        (now.called.load() != 0 || now.crashes.load() != 0 ||
         now.recorded.load() != 0)) {
      area_->Remember(now);
    }
  }
  for (survive::Outcome& one : area_->header().pending) {
    if (!comes_again(one)) one.unique.store(0);
  }
  for (WorkSlot* const slot : area_->left_slots()) {
    if (!comes_again(slot->now)) continue;
    const std::vector<WorkSlot::Counted> sums = Area::CountedBy(*slot);
    const bool stays = handles_.LeavesOf(slot->now.unique.load());
    // Undone, if this ends here: better one too many is kept.
    slot->now.unique.store(0);
    if (stays) continue;
    for (const WorkSlot::Counted& sum : sums) {
      if (Inode* const inode = inodes_.Find(sum.node)) {
        inodes_.Release(inode, static_cast<uint64_t>(sum.delta));
      }
    }
  }
  handles_.NoteLeft();
  area_->ForgetLeftSlots();
}

LeftFile::LeftFile(FileSystem& fs, uint64_t unique)
    : fs_(fs), handle_(fs.handles().TakeLeft(unique)) {}

LeftFile::~LeftFile() {
  if (handle_ == nullptr) return;
  Inode& inode = handle_->inode;
  fs_.handles().Remove(*handle_);
  fs_.inodes().Release(&inode, 1);
}

UniqueFd LeftFile::Open() const {
  return UniqueFd(
      handle_ == nullptr
          ? -1
          : ::fcntl(handle_->FdFor(fs_, handle_->flags), F_DUPFD_CLOEXEC, 0));
}

bool FileSystem::IsReleased(uint64_t unique, uint64_t fh) const {
  const survive::Outcome* const known = area_->Pending(unique);
  if (known == nullptr || known->called.load() == 0) return false;
  const survive::OpenRecord* const record = Handle::Of(fh)->Record();
  return known->done.load() != 0 || record == nullptr ||
         record->node.load() == 0;
}

}  // namespace tracefs
