// PlanBuilder: what each operation does to the model, and how it is put down.
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fuse.h>
#include <stdio.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "tracefs/replay/plan_builder.h"

namespace tracefs::replay {

Status PlanBuilder::DoName(const Observed& seen) {
  NodeId found = kNoNode;
  bool repeated = false;
  if (seen.ok()) {
    const LinkId known = model_.Find(seen.parent, seen.name);
    found = Named(seen.parent, seen.name, seen);
    // By a name that was not known it is the first, whatever was seen of the
    // file by others.
    repeated = LooksAgain(found, seen) && known != kNoLink;
    Learn(found, seen);
  }
  if (!seen.selected) return {};
  if (Status s = Ensure(found != kNoNode ? found : seen.parent); !s.ok()) {
    return s;
  }
  if (model_.node(seen.parent).slot == kNoSlot) return Unplaced(seen);
  Action a = Common(seen);
  a.place = Place::kName;
  a.dir = model_.node(seen.parent).slot;
  a.name = seen.name;
  UseName(seen.parent, seen.name, UseKind::kShared, false);
  if (found != kNoNode) {
    a.file = FileNumber(found);
    NoteNames(found, seen, &a);
    order_.Use(Resource::kFile, found, UseKind::kShared);
    if (model_.node(found).changing_until_ns > seen.begin_ns()) {
      a.flags |= kSizeRaces;
    }
  }
  if (repeated && !a.Has(kSizeRaces)) a.flags |= kRepeated;
  return Emit(&a);
}

// Whether it repeats an earlier operation on a file that has not changed since.
// From then on it counts as known.
bool PlanBuilder::LooksAgain(NodeId id, const Observed& seen) {
  Node& node = model_.node(id);
  if (!seen.ok() || !seen.Has(Field::kMode) || !seen.Has(Field::kSize)) {
    return false;
  }
  const bool same =
      node.mode == seen.Get(Field::kMode) &&
      (!S_ISREG(node.mode) || node.size == seen.Get(Field::kSize));
  const bool again = node.looked_at && same;
  node.looked_at = true;
  return again;
}

Status PlanBuilder::DoMake(const Observed& seen) {
  const Op op = seen.op();
  const bool opens = op == Op::create_ || op == Op::tmpfile_;
  // What others make in a directory that the plan makes cannot be there before.
  const Node& dir = model_.node(seen.parent);
  const bool in_time =
      options_.closure == Closure::kInit && dir.touched && !dir.initial;
  const bool wanted =
      seen.selected || (seen.ok() && (in_time || Wanted(seen, kNoNode)));
  if (wanted) {
    if (Status s = Ensure(seen.parent); !s.ok()) return s;
    if (model_.node(seen.parent).slot == kNoSlot) return Unplaced(seen);
  }
  Action a = Common(seen);
  a.place = op == Op::tmpfile_ ? Place::kDir : Place::kName;
  a.dir = model_.node(seen.parent).slot;
  a.name = op == Op::tmpfile_ ? std::string_view() : seen.name;
  a.text = op == Op::symlink_ ? seen.text : std::string_view();
  a.mode = seen.Get32(Field::kArgMode);
  a.umask = seen.Get32(Field::kUmask);
  a.rdev = seen.Get(Field::kRdev);
  a.arg_flags = seen.Get32(Field::kFlags);
  const UseKind kind = seen.ok() ? UseKind::kAlone : UseKind::kShared;
  if (op == Op::tmpfile_) {
    order_.Use(Resource::kDirectory, a.dir, UseKind::kShared);
  } else {
    UseName(seen.parent, seen.name, kind, seen.ok());
  }
  if (!seen.ok()) return wanted ? Emit(&a) : Status();

  if (op != Op::tmpfile_) {
    // The file with that name is gone, and the trace does not show how.
    if (const LinkId old = model_.Find(seen.parent, seen.name);
        old != kNoLink) {
      const NodeId was = model_.link(old).node;
      model_.RemoveLink(old);
      Unlinked(was);
    }
  }
  const NodeId id = model_.Add(seen.Get(Field::kInode));
  Node& node = model_.node(id);
  const uint32_t type = op == Op::mkdir_     ? S_IFDIR
                        : op == Op::symlink_ ? S_IFLNK
                        : op == Op::mknod_   ? a.mode & S_IFMT
                                             : S_IFREG;
  node.mode = static_cast<uint16_t>(type | (a.mode & ~a.umask & 07777));
  if (type == 0) node.mode |= S_IFREG;
  node.rdev = static_cast<uint32_t>(a.rdev);
  node.complete = S_ISDIR(node.mode);
  node.has_xattrs = true;
  a.file = node.serial;
  node.touched = wanted;
  node.size = a.text.size();
  Learn(id, seen);
  if (op != Op::tmpfile_) model_.AddLink(seen.parent, seen.name, id);
  Handle handle{.slot = kNoSlot, .node = id, .is_dir = false};
  if (opens && seen.Has(Field::kFh)) {
    if (wanted) handle.slot = NewSlot(&free_handles_, &header_.handle_slots);
    node.open_handle = handle.slot;
    ++node.open_count;
    handles_[seen.Get(Field::kFh)] = handle;
  }
  if (!wanted) return {};
  ++header_.made_entries;
  order_.Use(Resource::kFile, id, UseKind::kAlone);
  if (op == Op::mkdir_) {
    node.slot = NewSlot(&free_dirs_, &header_.dir_slots);
    a.made_dir = node.slot;
    order_.Use(Resource::kDirectory, node.slot, UseKind::kAlone);
  }
  if (handle.slot != kNoSlot) {
    a.handle = handle.slot;
    order_.Use(Resource::kHandle, handle.slot, UseKind::kAlone);
  }
  return Emit(&a);
}

Status PlanBuilder::DoRemove(const Observed& seen) {
  NodeId id = kNoNode;
  if (seen.ok()) {
    id = Named(seen.parent, seen.name, seen);
    Learn(id, seen);
  } else if (const LinkId link = model_.Find(seen.parent, seen.name);
             link != kNoLink) {
    id = model_.link(link).node;
  }
  const bool wanted = Wanted(seen, id) && (seen.selected || seen.ok());
  if (wanted) {
    if (Status s = Ensure(id != kNoNode ? id : seen.parent); !s.ok()) return s;
    if (model_.node(seen.parent).slot == kNoSlot) return Unplaced(seen);
    Action a = Common(seen);
    a.place = Place::kName;
    a.dir = model_.node(seen.parent).slot;
    a.name = seen.name;
    a.flags &= ~kHasStat;  // that of before
    UseName(seen.parent, seen.name,
            seen.ok() ? UseKind::kAlone : UseKind::kShared, seen.ok());
    std::string other_name;
    a.file = FileNumber(id);
    if (id != kNoNode) {
      if (seen.marked) {
        other_name = AnotherName(id, seen.parent, seen.name);
        a.text = other_name;
        if (!CanBeMadeAgain(id)) LacksBytes(id, &a);
        if (MayHaveAcl(id)) a.flags |= kUnknownAcl;
        if (model_.node(id).more_names) a.flags |= kUnknownNames;
      }
      const Node& node = model_.node(id);
      order_.Use(Resource::kFile, id, UseKind::kAlone);
      if (S_ISDIR(node.mode) && node.slot != kNoSlot) {
        if (seen.ok() && node.open_count == 0) a.made_dir = node.slot;
        order_.Use(Resource::kDirectory, node.slot, UseKind::kAlone);
        order_.Use(Resource::kListing, node.slot, UseKind::kList);
      }
    }
    if (Status s = Emit(&a); !s.ok()) return s;
  }
  if (!seen.ok()) return {};
  if (const LinkId link = model_.Find(seen.parent, seen.name);
      link != kNoLink) {
    KeepInitialName(id);
    model_.node(id).looked_at = false;
    model_.RemoveLink(link);
    Unlinked(id);
  }
  return {};
}

Status PlanBuilder::DoRename(const Observed& seen) {
  const bool exchange = (seen.Get(Field::kFlags) & RENAME_EXCHANGE) != 0;
  NodeId moved = kNoNode;
  if (seen.ok()) {
    moved = Named(seen.parent, seen.name, seen);
    Learn(moved, seen);
  } else if (const LinkId link = model_.Find(seen.parent, seen.name);
             link != kNoLink) {
    moved = model_.link(link).node;
  }
  const LinkId other_link = model_.Find(seen.new_parent, seen.new_name);
  const NodeId other =
      other_link == kNoLink ? kNoNode : model_.link(other_link).node;
  const bool wanted =
      Wanted(seen, moved, other) && (seen.selected || seen.ok());
  if (wanted) {
    for (const NodeId id : {moved, other, seen.parent, seen.new_parent}) {
      if (Status s = Ensure(id); !s.ok()) return s;
    }
    if (model_.node(seen.parent).slot == kNoSlot ||
        model_.node(seen.new_parent).slot == kNoSlot) {
      return Unplaced(seen);
    }
    Action a = Common(seen);
    a.place = Place::kName;
    a.dir = model_.node(seen.parent).slot;
    a.name = seen.name;
    a.new_dir = model_.node(seen.new_parent).slot;
    a.new_name = seen.new_name;
    a.arg_flags = seen.Get32(Field::kFlags);
    a.flags &= ~kHasStat;
    a.file = FileNumber(moved);
    a.file_out = FileNumber(other);
    std::string other_name;
    if (seen.marked && other != kNoNode && !exchange) {
      other_name = AnotherName(other, seen.new_parent, seen.new_name);
      a.text = other_name;
      if (!CanBeMadeAgain(other)) LacksBytes(other, &a);
      if (MayHaveAcl(other)) a.flags |= kUnknownAcl;
      if (model_.node(other).more_names) a.flags |= kUnknownNames;
    }
    const UseKind kind = seen.ok() ? UseKind::kAlone : UseKind::kShared;
    UseName(seen.parent, seen.name, kind, seen.ok());
    UseName(seen.new_parent, seen.new_name, kind, seen.ok());
    for (const NodeId id : {moved, other}) {
      if (id == kNoNode) continue;
      order_.Use(Resource::kFile, id, UseKind::kAlone);
      const Node& node = model_.node(id);
      if (id == other && S_ISDIR(node.mode) && node.slot != kNoSlot) {
        order_.Use(Resource::kDirectory, node.slot, UseKind::kAlone);
      }
    }
    if (Status s = Emit(&a); !s.ok()) return s;
  }
  if (!seen.ok() || moved == other) return {};
  KeepInitialName(moved);
  if (other != kNoNode) KeepInitialName(other);
  if (other != kNoNode) model_.RemoveLink(other_link);
  model_.RemoveLink(model_.Find(seen.parent, seen.name));
  model_.AddLink(seen.new_parent, seen.new_name, moved);
  model_.node(moved).looked_at = false;
  if (other != kNoNode) model_.node(other).looked_at = false;
  if (other != kNoNode) {
    if (exchange) {
      model_.AddLink(seen.parent, seen.name, other);
    } else {
      Unlinked(other);
    }
  }
  return {};
}

Status PlanBuilder::DoLink(const Observed& seen, NodeId file) {
  const bool wanted = Wanted(seen, file) && (seen.selected || seen.ok());
  if (wanted) {
    if (Status s = Ensure(file); !s.ok()) return s;
    if (Status s = Ensure(seen.new_parent); !s.ok()) return s;
    Action a = Common(seen);
    a.new_dir = model_.node(seen.new_parent).slot;
    if (a.new_dir == kNoSlot || !PlaceAt(file, &a)) return Unplaced(seen);
    a.new_name = seen.new_name;
    a.file = FileNumber(file);
    UseOf(a, file, UseKind::kAlone);
    UseName(seen.new_parent, seen.new_name,
            seen.ok() ? UseKind::kAlone : UseKind::kShared, seen.ok());
    if (Status s = Emit(&a); !s.ok()) return s;
  }
  if (!seen.ok()) return {};
  Learn(file, seen);
  if (const LinkId old = model_.Find(seen.new_parent, seen.new_name);
      old != kNoLink) {
    const NodeId was = model_.link(old).node;
    if (was == file) return {};
    model_.RemoveLink(old);
    Unlinked(was);
  }
  KeepInitialName(file);
  model_.node(file).looked_at = false;
  model_.AddLink(seen.new_parent, seen.new_name, file);
  return {};
}

Status PlanBuilder::DoSetattr(const Observed& seen, NodeId file) {
  const uint32_t valid = seen.Get32(Field::kValid);
  const bool resizes = (valid & FATTR_SIZE) != 0;
  const uint64_t old_size = model_.node(file).size;
  const uint8_t old_known = model_.node(file).known;
  if (Wanted(seen, file) && (seen.selected || seen.ok())) {
    if (Status s = Ensure(file); !s.ok()) return s;
    Handle* handle = nullptr;
    if (seen.Get(Field::kFh) != 0 && resizes) {
      if (Status s = EnsureHandle(seen, file, seen.Get(Field::kFh), &handle);
          !s.ok()) {
        return s;
      }
    }
    Action a = Common(seen);
    if (handle != nullptr && handle->slot != kNoSlot) {
      a.place = Place::kHandle;
      a.handle = handle->slot;
    } else if (!PlaceAt(file, &a)) {
      return Unplaced(seen);
    }
    a.valid = valid;
    a.file = FileNumber(file);
    a.mode = seen.Get32(Field::kArgMode);
    a.new_uid = seen.Get32(Field::kNewUid);
    a.new_gid = seen.Get32(Field::kNewGid);
    a.new_size = seen.Get(Field::kNewSize);
    a.new_atime_ns = static_cast<int64_t>(seen.Get(Field::kNewAtime));
    a.new_mtime_ns = static_cast<int64_t>(seen.Get(Field::kNewMtime));
    NoteNames(file, seen, &a);
    UseOf(a, file, UseKind::kAlone);
    if (seen.marked && ((resizes && !HasBytes(file, a.new_size, UINT64_MAX)) ||
                        !KnowsAttributes(file))) {
      LacksBytes(file, &a);
    }
    if (Status s = Emit(&a); !s.ok()) return s;
  }
  if (!seen.ok()) return {};
  Node& node = model_.node(file);
  node.looked_at = false;
  Learn(file, seen);
  if (resizes) {
    node.size = old_size;
    node.known = static_cast<uint8_t>((node.known & ~TreeEntry::kSize) |
                                      (old_known & TreeEntry::kSize));
    Resized(file, seen.Get(Field::kNewSize));
    node.changing_until_ns = std::max(node.changing_until_ns, seen.end_ns());
  }
  if (!seen.Has(Field::kMode) && (valid & FATTR_MODE) != 0) {
    node.mode = static_cast<uint16_t>((node.mode & S_IFMT) |
                                      (seen.Get(Field::kArgMode) & 07777));
  }
  // A new owner ends set-id bits, as chown(2) says, where nothing else does.
  if (!seen.Has(Field::kMode) && (valid & (FATTR_UID | FATTR_GID)) != 0 &&
      (valid & FATTR_MODE) == 0 && !S_ISDIR(node.mode)) {
    const uint32_t ended = S_ISUID | ((node.mode & S_IXGRP) != 0 ? S_ISGID : 0);
    node.mode = static_cast<uint16_t>(node.mode & ~ended);
    // Of the other kind it depends on who asks.
    if ((node.mode & S_ISGID) != 0) node.known &= ~TreeEntry::kMode;
  }
  if ((valid & FATTR_UID) != 0) node.uid = seen.Get32(Field::kNewUid);
  if ((valid & FATTR_GID) != 0) node.gid = seen.Get32(Field::kNewGid);
  return {};
}

Status PlanBuilder::DoLock(const Observed& seen, NodeId file) {
  Node& node = model_.node(file);
  const bool flush = seen.op() == Op::flush_;
  if (flush && !node.locked) return {};  // nothing comes of it
  if (!seen.selected) return {};
  if (!seen.Has(Field::kFh)) return Unplaced(seen);
  node.locked = true;
  Handle* handle = nullptr;
  if (Status s = EnsureHandle(seen, file, seen.Get(Field::kFh), &handle);
      !s.ok()) {
    return s;
  }
  if (handle->slot == kNoSlot) return Unplaced(seen);
  Action a = Common(seen);
  a.place = Place::kHandle;
  a.flags &= ~kHasStat;
  a.handle = handle->slot;
  a.offset = seen.Get(Field::kOffset);
  a.length = seen.Get(Field::kLength);
  a.arg_flags = seen.Get32(Field::kFlags);
  a.lock_type = seen.Get32(Field::kLockType);
  a.lock_owner = seen.Get(Field::kLockOwner);
  a.rdev = file;  // locks are of a file and an owner
  order_.Use(Resource::kHandle, a.handle, UseKind::kShared);
  order_.Use(Resource::kLocks, file, UseKind::kAlone);
  return Emit(&a);
}

Status PlanBuilder::DoFile(const Observed& seen, NodeId file) {
  const Op op = seen.op();
  const bool changes =
      op == Op::setxattr_ || op == Op::removexattr_ || op == Op::fallocate_;
  if (!seen.selected && !(changes && seen.ok() && Wanted(seen, file))) {
    if (seen.ok() && file != kNoNode) Learn(file, seen);
    return {};
  }
  if (file == kNoNode) file = kRootNode;  // statfs
  if (Status s = Ensure(file); !s.ok()) return s;
  if (op == Op::readlink_ && seen.ok()) {
    if (const auto link = links_before_.find(file);
        link != links_before_.end()) {
      link->second.target = seen.text;
      if (Status s = out_->AddInitial(link->second); !s.ok()) return s;
      links_before_.erase(link);
    }
  }
  const bool by_handle = op == Op::fallocate_ || op == Op::lseek_ ||
                         op == Op::fsync_ || op == Op::readdir_ ||
                         op == Op::fsyncdir_ ||
                         (op == Op::getattr_ && seen.Get(Field::kFh) != 0);
  Handle* handle = nullptr;
  if (by_handle) {
    if (!seen.Has(Field::kFh)) return Unplaced(seen);
    if (Status s = EnsureHandle(seen, file, seen.Get(Field::kFh), &handle);
        !s.ok()) {
      return s;
    }
    if (handle->slot == kNoSlot) return Unplaced(seen);
  }
  Action a = Common(seen);
  if (by_handle) {
    a.place = Place::kHandle;
    a.handle = handle->slot;
  } else if (!PlaceAt(file, &a)) {
    return Unplaced(seen);
  }
  a.offset = seen.Get(Field::kOffset);
  a.length = seen.Get(Field::kLength);
  a.arg_flags = seen.Get32(Field::kFlags);
  a.mode = seen.Get32(Field::kArgMode);
  a.valid = seen.Get32(Field::kValid);
  a.text = seen.text;
  a.file = FileNumber(file);
  NoteNames(file, seen, &a);
  if (op == Op::setxattr_ && seen.has_data) {
    a.data = seen.data;
    a.flags |= kHasData;
  }
  UseOf(a, file, changes ? UseKind::kAlone : UseKind::kShared);
  if (op == Op::readdir_) {
    order_.Use(Resource::kListing, model_.node(file).slot, UseKind::kList);
    order_.Use(Resource::kHandle, a.handle, UseKind::kAlone);
  }
  Node& node = model_.node(file);
  if (node.changing_until_ns > seen.begin_ns()) a.flags |= kSizeRaces;
  if (changes) node.looked_at = false;
  if (op == Op::getattr_ && LooksAgain(file, seen) && !a.Has(kSizeRaces)) {
    a.flags |= kRepeated;
  }
  if (seen.marked && changes &&
      !(op == Op::fallocate_ ? HasAllBytes(file)
                             : static_cast<bool>(node.has_xattrs))) {
    LacksBytes(file, &a);
  }
  if (Status s = Emit(&a); !s.ok()) return s;
  if (!seen.ok()) return {};
  const bool knew_size = KnowsSize(file);
  const uint64_t old_size = node.size;
  Learn(file, seen);
  if (op == Op::setxattr_ && !seen.has_data) node.has_xattrs = false;
  if (op != Op::fallocate_) return {};
  constexpr uint64_t kMoves = FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_INSERT_RANGE;
  const uint64_t mode = seen.Get(Field::kFlags);
  if (knew_size) node.size = old_size;
  if ((mode & kMoves) != 0) {
    // Which bytes are unknown after that is not followed.
    if (!HasAllBytes(file)) node.lacks_bytes = true;
    const bool shrinks = (mode & FALLOC_FL_COLLAPSE_RANGE) != 0;
    if (knew_size) {
      node.size = shrinks ? old_size - std::min(old_size, a.length)
                          : old_size + a.length;
    }
    Replaced(file, 0, UINT64_MAX, /*recorded=*/true);
  } else {
    if ((mode & FALLOC_FL_KEEP_SIZE) == 0) {
      Grew(file, a.offset + a.length);
      node.size = std::max(node.size, a.offset + a.length);
    }
    if ((mode & (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE)) != 0) {
      Replaced(file, a.offset, a.offset + a.length, /*recorded=*/true);
    }
  }
  node.written = true;
  node.looked_at = false;
  node.changing_until_ns = std::max(node.changing_until_ns, seen.end_ns());
  return {};
}

}  // namespace tracefs::replay
