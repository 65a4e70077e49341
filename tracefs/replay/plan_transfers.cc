// PlanBuilder: open files, and what goes through them.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "tracefs/base/crc32c.h"
#include "tracefs/replay/plan_builder.h"

namespace tracefs::replay {

Status PlanBuilder::DoOpen(const Observed& seen, NodeId file) {
  const bool is_dir = seen.op() == Op::opendir_;
  Node& node = model_.node(file);
  const bool truncates = (seen.Get(Field::kFlags) & O_TRUNC) != 0 && !is_dir;
  const bool wanted = seen.selected || (seen.ok() && Wanted(seen, file));
  uint32_t slot = kNoSlot;
  if (wanted) {
    if (Status s = Ensure(file); !s.ok()) return s;
    Action a = Common(seen);
    if (!PlaceAt(file, &a)) return Unplaced(seen);
    a.arg_flags = seen.Get32(Field::kFlags);
    a.file = FileNumber(file);
    UseOf(a, file, truncates ? UseKind::kAlone : UseKind::kShared);
    if (seen.marked && truncates && !HasAllBytes(file)) {
      LacksBytes(file, &a);
    }
    if (seen.ok()) {
      slot = NewSlot(&free_handles_, &header_.handle_slots);
      const uint32_t from = a.handle;
      a.handle = slot;
      // A file without a name is opened through an open handle of it.
      if (a.place == Place::kHandle) a.handle_out = from;
      order_.Use(Resource::kHandle, slot, UseKind::kAlone);
    }
    if (Status s = Emit(&a); !s.ok()) return s;
  }
  if (!seen.ok()) return {};
  if (truncates) {
    Resized(file, 0);
    node.looked_at = false;
    node.changing_until_ns = seen.end_ns();
  }
  ++node.open_count;
  if (slot != kNoSlot && !is_dir) node.open_handle = slot;
  if (seen.Has(Field::kFh)) {
    handles_[seen.Get(Field::kFh)] = {slot, file, is_dir};
  }
  return {};
}

Status PlanBuilder::EnsureHandle(const Observed& seen, NodeId file, uint64_t fh,
                                 Handle** handle) {
  auto [at, is_new] = handles_.try_emplace(fh);
  *handle = &at->second;
  if (is_new) {
    at->second.node = file;
    ++model_.node(file).open_count;
    ++lacks_.handles_before;
  } else if (at->second.node != file) {
    *handle = &no_handle_;  // the trace says that it is open as another file
    return {};
  }
  if (at->second.slot != kNoSlot) return {};
  // It was opened before the trace began, or by who was not selected.
  if (Status s = Ensure(file); !s.ok()) return s;
  Action a = Common(seen);
  if (!PlaceAt(file, &a)) return {};
  const bool is_dir = S_ISDIR(model_.node(file).mode);
  a.op = is_dir ? Op::opendir_ : Op::open_;
  a.sequence = 0;
  a.flags = kUntimed;
  a.error = 0;
  a.result = 0;
  a.duration_ns = 0;
  a.arg_flags = seen.Get32(Field::kFlags) & O_ACCMODE;
  if (seen.op() != Op::read_ && !is_dir) a.arg_flags = O_RDWR;
  at->second.slot = NewSlot(&free_handles_, &header_.handle_slots);
  at->second.is_dir = is_dir;
  UseOf(a, file, UseKind::kShared);
  if (a.place == Place::kHandle) a.handle_out = a.handle;
  a.handle = at->second.slot;
  model_.node(file).open_handle = a.handle;
  order_.Use(Resource::kHandle, a.handle, UseKind::kAlone);
  return Emit(&a);
}

Status PlanBuilder::DoTransfer(const Observed& seen, NodeId file) {
  const bool writes = seen.op() == Op::write_;
  const uint64_t done = seen.ok() ? seen.Get(Field::kResult) : 0;
  const uint64_t end = seen.Get(Field::kOffset) + done;
  const bool wanted =
      seen.selected || (writes && seen.ok() && Wanted(seen, file));
  Handle* handle = nullptr;
  if (wanted) {
    if (!seen.Has(Field::kFh)) return Unplaced(seen);
    if (Status s = EnsureHandle(seen, file, seen.Get(Field::kFh), &handle);
        !s.ok()) {
      return s;
    }
    if (handle->slot == kNoSlot) return Unplaced(seen);
    Action a = Common(seen);
    a.flags &= ~kHasStat;
    a.place = Place::kHandle;
    a.handle = handle->slot;
    a.offset = seen.Get(Field::kOffset);
    a.length = seen.Get(Field::kLength);
    a.file = FileNumber(file);
    if (seen.has_data) {
      a.hash = Crc32c(seen.data);
      a.flags |= kHasHash;
    } else if (seen.Has(Field::kDataChecksum)) {
      a.hash = seen.Get32(Field::kDataChecksum);
      a.flags |= kHasHash;
    }
    if (writes) {
      if (seen.has_data && options_.keep_data) {
        a.data = seen.data;
        a.flags |= kHasData;
      }
      header_.written_bytes += done;
    } else {
      if (model_.node(file).changing_until_ns > seen.begin_ns()) {
        a.flags |= kRacing;
      }
      if (Status s = ReadInitial(seen, file, a); !s.ok()) return s;
      if (!HasBytes(file, a.offset, end)) a.flags |= kInitialData;
    }
    UseOf(a, file, writes ? UseKind::kAlone : UseKind::kShared);
    if (seen.marked && !HasBytes(file, a.offset, end)) LacksBytes(file, &a);
    if (Status s = Emit(&a); !s.ok()) return s;
  }
  if (!writes || !seen.ok()) return {};
  Node& node = model_.node(file);
  node.written = true;
  node.looked_at = false;
  if (done != 0) Grew(file, seen.Get(Field::kOffset));
  Replaced(file, seen.Get(Field::kOffset), end, wanted && seen.has_data);
  node.size = std::max(node.size, end);
  node.changing_until_ns = std::max(node.changing_until_ns, seen.end_ns());
  // Who writes may lose the set-id bits.
  if ((node.mode & (S_ISUID | S_ISGID)) != 0) node.known &= ~TreeEntry::kMode;
  return {};
}

// The file that is copied to: by its handle, or its number.
NodeId PlanBuilder::CopiedTo(const Observed& seen) const {
  const auto handle = handles_.find(seen.Get(Field::kFhOut));
  const NodeId open = handle == handles_.end() ? kNoNode : handle->second.node;
  if (!seen.Has(Field::kInodeOut)) return open;
  const NodeId to = model_.ByInode(seen.Get(Field::kInodeOut));
  return to == kNoNode ? open : to;
}

Status PlanBuilder::DoCopy(const Observed& seen, NodeId file) {
  const NodeId to = CopiedTo(seen);
  if (to == kNoNode) return Unplaced(seen);
  const uint64_t done = seen.ok() ? seen.Get(Field::kResult) : 0;
  const uint64_t begin = seen.Get(Field::kOffset);
  const uint64_t begin_out = seen.Get(Field::kOffsetOut);
  const bool wanted = seen.selected || Wanted(seen, to);
  bool recorded = seen.has_data;
  if (wanted) {
    Handle* from_handle = nullptr;
    Handle* to_handle = nullptr;
    if (!seen.Has(Field::kFh) || !seen.Has(Field::kFhOut)) {
      return Unplaced(seen);
    }
    if (Status s = EnsureHandle(seen, file, seen.Get(Field::kFh), &from_handle);
        !s.ok()) {
      return s;
    }
    const uint32_t from_slot = from_handle->slot;
    if (Status s = EnsureHandle(seen, to, seen.Get(Field::kFhOut), &to_handle);
        !s.ok()) {
      return s;
    }
    if (from_slot == kNoSlot || to_handle->slot == kNoSlot) {
      return Unplaced(seen);
    }
    Action a = Common(seen);
    a.place = Place::kHandle;
    a.flags &= ~kHasStat;
    a.handle = from_slot;
    a.handle_out = to_handle->slot;
    a.offset = begin;
    a.offset_out = begin_out;
    a.length = seen.Get(Field::kLength);
    a.file = FileNumber(file);
    a.file_out = FileNumber(to);
    if (seen.has_data || seen.Has(Field::kDataChecksum)) {
      a.hash =
          seen.has_data ? Crc32c(seen.data) : seen.Get32(Field::kDataChecksum);
      a.flags |= kHasHash;
    }
    if (Status s = ReadInitial(seen, file, a); !s.ok()) return s;
    if (HasBytes(file, begin, begin + done)) {
      recorded = true;
    } else {
      a.flags |= kInitialData;
    }
    UseOf(a, file, file == to ? UseKind::kAlone : UseKind::kShared);
    order_.Use(Resource::kFile, to, UseKind::kAlone);
    order_.Use(Resource::kHandle, a.handle_out, UseKind::kShared);
    header_.written_bytes += done;
    if (seen.marked && !HasBytes(to, begin_out, begin_out + done)) {
      LacksBytes(to, &a);
    }
    if (Status s = Emit(&a); !s.ok()) return s;
  }
  if (!seen.ok()) return {};
  Node& node = model_.node(to);
  node.written = true;
  node.looked_at = false;
  if (done != 0) Grew(to, begin_out);
  Replaced(to, begin_out, begin_out + done, wanted && recorded);
  node.size = std::max(node.size, begin_out + done);
  node.changing_until_ns = std::max(node.changing_until_ns, seen.end_ns());
  if ((node.mode & (S_ISUID | S_ISGID)) != 0) node.known &= ~TreeEntry::kMode;
  return {};
}

Status PlanBuilder::DoClose(const Observed& seen, NodeId file) {
  if (!seen.Has(Field::kFh)) return {};
  const auto at = handles_.find(seen.Get(Field::kFh));
  if (at == handles_.end()) return {};  // opened before, and never used
  const Handle handle = at->second;
  handles_.erase(at);
  file = handle.node;
  Node& node = model_.node(file);
  if (handle.slot != kNoSlot) {
    Action a = Common(seen);
    a.place = Place::kHandle;
    a.handle = handle.slot;
    a.flags &= ~kHasStat;
    UseOf(a, file, UseKind::kShared);
    order_.Use(Resource::kHandle, handle.slot, UseKind::kAlone);
    if (node.locked) order_.Use(Resource::kLocks, file, UseKind::kAlone);
    if (Status s = Emit(&a); !s.ok()) return s;
    free_handles_.push_back(handle.slot);
    if (node.open_handle == handle.slot) node.open_handle = kNoSlot;
  }
  if (node.open_count != 0) --node.open_count;
  Unlinked(file);
  return {};
}

}  // namespace tracefs::replay
