// PlanBuilder: the tree that was there before, and the one in the end.
#include <linux/fuse.h>
#include <sys/stat.h>

#include <utility>
#include <vector>

#include "tracefs/event/op_set.h"
#include "tracefs/format/state_message.h"
#include "tracefs/replay/plan_builder.h"

namespace tracefs::replay {

Status PlanBuilder::Ensure(NodeId id) {
  if (id == kNoNode || model_.node(id).touched) return {};
  // Directories that it is in come first.
  std::vector<NodeId> line;
  for (NodeId at = id; !model_.node(at).touched;) {
    line.push_back(at);
    const LinkId link = model_.node(at).first_link;
    if (link == kNoLink || line.size() > 4096) return {};
    at = model_.link(link).parent;
  }
  for (auto at = line.rbegin(); at != line.rend(); ++at) {
    if (Status s = EnsureEntry(*at); !s.ok()) return s;
  }
  return {};
}

// Whether what was there before has names that no operation has told of.
void PlanBuilder::LearnNames(NodeId id, const Observed& seen) {
  Node& node = model_.node(id);
  if (!node.initial || !seen.Has(Field::kNlink) || ChangesNames(seen.op())) {
    return;
  }
  uint64_t names = 0;
  for (LinkId at = node.first_link; at != kNoLink; at = model_.link(at).next) {
    ++names;
  }
  node.more_names = !S_ISDIR(node.mode) && seen.Get(Field::kNlink) > names;
}

// The same for who compares what the operation saw.
void PlanBuilder::NoteNames(NodeId id, const Observed& seen, Action* a) {
  if (!a->Has(kHasStat)) return;
  LearnNames(id, seen);
  if (model_.node(id).more_names) a->flags |= kUnknownNames;
}

Status PlanBuilder::EnsureEntry(NodeId id) {
  Node& node = model_.node(id);
  const Link& link = model_.link(node.first_link);
  TreeEntry entry;
  entry.parent = model_.node(link.parent).slot;
  if (entry.parent == kNoSlot) return {};
  if (S_ISDIR(node.mode)) {
    // Never one that was used before: all of these are there at once.
    node.slot = header_.dir_slots++;
    entry.slot = node.slot;
  }
  entry.name = link.name;
  entry.mode = node.mode;
  entry.uid = node.uid;
  entry.gid = node.gid;
  entry.size = node.size;
  entry.rdev = node.rdev;
  entry.file = node.serial;
  entry.known = node.known;
  // What others wrote into it so far is there to begin with.
  covered_.erase(id);
  made_up_.erase(id);
  node.lacks_bytes = false;
  node.touched = true;
  node.initial = true;
  ++header_.initial_entries;
  ++lacks_.entries_before;
  if ((node.known & TreeEntry::kMode) == 0) ++lacks_.entries_without_attributes;
  if (S_ISREG(node.mode)) header_.initial_bytes += node.size;
  if (const auto known = states_.find(node.inode); known != states_.end()) {
    ++lacks_.entries_known;
    entry.target = std::move(known->second.target);
    entry.xattrs = std::move(known->second.xattrs);
    entry.rdev = known->second.rdev;
    if (known->second.checksum) {
      entry.checksum = *known->second.checksum;
      entry.known |= TreeEntry::kChecksum;
      checked_.insert(id);
    }
    if (known->second.has_holes) {
      covered_[id] = std::move(known->second.holes);
    }
    node.has_xattrs = known->second.is_whole;
    states_.erase(known);
  }
  NotePrivileges(entry);
  if (out_ == nullptr) return {};
  if (S_ISLNK(node.mode) && entry.target.empty()) {
    links_before_[id] = entry;  // until its target is requested
    return {};
  }
  if (Status s = out_->AddInitial(entry); !s.ok()) return s;
  for (LinkId other = link.next; other != kNoLink;
       other = model_.link(other).next) {
    const NodeId parent = model_.link(other).parent;
    if (Status s = Ensure(parent); !s.ok()) return s;
    TreeEntry further = entry;
    further.parent = model_.node(parent).slot;
    if (further.parent == kNoSlot) continue;
    further.name = model_.link(other).name;
    further.other_parent = entry.parent;
    further.other_name = entry.name;
    ++header_.initial_entries;
    if (Status s = out_->AddInitial(further); !s.ok()) return s;
  }
  return {};
}

void PlanBuilder::TakeState(const format::StateRecord& state) {
  const Event& event = state.file->event;
  if (state.at_end) {
    std::string_view path = state.file->Text(Field::kPath);
    if (path.size() < 2 || path[0] != '/') return;
    path.remove_prefix(1);
    ++lacks_.final_states;
    if (out_ == nullptr || !IsSafePath(path)) return;
    // It may have names that no operation has told of: what it holds is known.
    if (event.GetOr0(Field::kNlink) > 1 &&
        !S_ISDIR(event.GetOr0(Field::kMode))) {
      if (event.Has(Field::kDataChecksum) && event.Has(Field::kInode)) {
        linked_checksums_[event.GetOr0(Field::kInode)] =
            static_cast<uint32_t>(event.GetOr0(Field::kDataChecksum));
      }
      return;
    }
    TreeEntry entry;
    entry.name = path;
    entry.mode = static_cast<uint32_t>(event.GetOr0(Field::kMode));
    entry.uid = static_cast<uint32_t>(event.GetOr0(Field::kFuid));
    entry.gid = static_cast<uint32_t>(event.GetOr0(Field::kFgid));
    entry.size = event.GetOr0(Field::kSize);
    entry.target = state.file->Text(Field::kTarget);
    entry.known = TreeEntry::kRecorded | TreeEntry::kMode | TreeEntry::kOwner |
                  TreeEntry::kSize;
    if (!entry.target.empty()) entry.known |= TreeEntry::kTarget;
    if (event.Has(Field::kMtime)) {
      entry.mtime_ns = static_cast<int64_t>(event.GetOr0(Field::kMtime));
      entry.known |= TreeEntry::kMtime;
    }
    if (event.Has(Field::kDataChecksum)) {
      entry.checksum =
          static_cast<uint32_t>(event.GetOr0(Field::kDataChecksum));
      entry.known |= TreeEntry::kChecksum;
    }
    if (Status s = out_->AddFinal(entry); !s.ok()) state_status_ = s;
    return;
  }
  if (state.incomplete) ++lacks_.states_incomplete;
  if (state.is_open) {
    if (Status s = TakeOpenFile(state); !s.ok()) state_status_ = s;
    return;
  }
  if (state.late) {
    ++lacks_.states_late;
    return;
  }
  KeepState(state);
}

void PlanBuilder::KeepState(const format::StateRecord& state) {
  const Event& event = state.file->event;
  InitialState& known = states_[event.GetOr0(Field::kInode)];
  known = {};
  known.target = state.file->Text(Field::kTarget);
  known.rdev = event.GetOr0(Field::kRdev);
  known.is_whole = !state.incomplete;
  if (event.Has(Field::kDataChecksum)) {
    known.checksum = static_cast<uint32_t>(event.GetOr0(Field::kDataChecksum));
  }
  if (state.ForEachXattr([](std::string_view, std::string_view) {})) {
    known.xattrs = AsText(state.xattrs);
  }
  if (!state.has_ranges) return;
  known.has_holes = true;
  uint64_t at = 0;
  (void)state.ForEachRange([&](uint64_t offset, uint64_t length) {
    if (offset > at) known.has_holes &= known.holes.Add(at, offset);
    at = std::max(at, offset + length);
  });
  known.has_holes &= known.holes.Add(at, UINT64_MAX);
}

// --- What the trace asks for that a replay does only when told to.

void PlanBuilder::NotePrivileges(const TreeEntry& entry) {
  if ((entry.mode & kSetIdBits) != 0) NotePrivilege(Privilege::kSetId);
  if (entry.Knows(TreeEntry::kOwner) && (entry.uid != 0 || entry.gid != 0)) {
    NotePrivilege(Privilege::kOwner);
  }
  if (S_ISCHR(entry.mode) || S_ISBLK(entry.mode)) {
    NotePrivilege(Privilege::kDevice);
  }
  format::StateRecord state;
  state.xattrs = AsBytes(entry.xattrs);
  (void)state.ForEachXattr([&](std::string_view name, std::string_view value) {
    const auto takes = PrivilegeOfXattr(name, AsBytes(value));
    if (takes) NotePrivilege(*takes);
  });
}

void PlanBuilder::NotePrivileges(const Action& a) {
  if (a.error != 0) return;
  if (IsAmong<38, Op::create_, Op::tmpfile_, Op::mkdir_, Op::mknod_,
              Op::symlink_>(a.op)) {
    if ((a.mode & kSetIdBits) != 0) NotePrivilege(Privilege::kSetId);
    if (a.uid != 0 || a.gid != 0) NotePrivilege(Privilege::kOwner);
    const bool node = a.op == Op::mknod_;
    if (node && (S_ISCHR(a.mode) || S_ISBLK(a.mode))) {
      NotePrivilege(Privilege::kDevice);
    }
  } else if (a.op == Op::setattr_) {
    if ((a.valid & FATTR_MODE) != 0 && (a.mode & kSetIdBits) != 0) {
      NotePrivilege(Privilege::kSetId);
    }
    if ((a.valid & (FATTR_UID | FATTR_GID)) != 0) {
      NotePrivilege(Privilege::kOwner);
    }
  } else if (ChangesXattrs(a.op)) {
    if (const auto takes = PrivilegeOfXattr(a.text, a.data)) {
      NotePrivilege(*takes);
    }
  }
}

// --- The end.

// A path by which the file is still known without that name; empty: none.
std::string PlanBuilder::AnotherName(NodeId id, NodeId parent,
                                     std::string_view name) const {
  for (LinkId at = model_.node(id).first_link; at != kNoLink;
       at = model_.link(at).next) {
    const Link& link = model_.link(at);
    if (link.parent == parent && link.name == name) continue;
    std::string path;
    if (!model_.PathOf(link.parent, &path)) continue;
    return path.empty() ? link.name : path + "/" + link.name;
  }
  return {};
}

Status PlanBuilder::WriteFinal() {
  Status status;
  std::string path;
  model_.ForEachLink([&](const Link& link) {
    const Node& node = model_.node(link.node);
    if (!status.ok() || !node.touched) return;
    if (!model_.PathOf(link.parent, &path)) return;
    if (!path.empty()) path.push_back('/');
    path += link.name;
    TreeEntry entry;
    entry.name = path;
    entry.mode = node.mode;
    entry.uid = node.uid;
    entry.gid = node.gid;
    entry.size = node.size;
    entry.known = node.known;
    if (S_ISDIR(node.mode) && node.complete) {
      entry.known |= TreeEntry::kComplete;
    }
    if (S_ISREG(node.mode) && HasAllBytes(link.node)) {
      entry.known |= TreeEntry::kAllBytes;
    } else if (S_ISREG(node.mode) &&
               (HasInitialBytes(link.node, 0, UINT64_MAX) ||
                !checked_.contains(link.node))) {
      entry.known |= TreeEntry::kMadeUp;
    }
    const auto linked = linked_checksums_.find(node.inode);
    if (S_ISREG(node.mode) && linked != linked_checksums_.end()) {
      entry.checksum = linked->second;
      entry.known |= TreeEntry::kChecksum;
    }
    status = out_->AddFinal(entry);
  });
  return status;
}

}  // namespace tracefs::replay
