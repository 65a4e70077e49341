#include "tracefs/replay/plan_builder.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "tracefs/base/crc32c.h"
#include "tracefs/event/op_set.h"
#include "tracefs/format/block_decoder.h"
#include "tracefs/replay/acl.h"

namespace tracefs::replay {
namespace {

using format::Record;

constexpr size_t kMostHeld = 4096;

bool IsByName(Op op) {
  return IsAmong<38, Op::lookup_, Op::symlink_, Op::mknod_, Op::mkdir_,
                 Op::unlink_, Op::rmdir_, Op::rename_, Op::create_,
                 Op::tmpfile_>(op);
}

bool Waits(const Observed& seen) {
  return (seen.op() == Op::setlk_ || seen.op() == Op::flock_) &&
         seen.Get(Field::kFlags) == 1 && seen.Get(Field::kLockType) != F_UNLCK;
}

bool ChangesFiles(const Observed& seen) {
  if (seen.op() == Op::lookup_) return false;
  if (seen.op() == Op::open_) return (seen.Get(Field::kFlags) & O_TRUNC) != 0;
  return IsByName(seen.op()) ||
         IsAmong<38, Op::link_, Op::setattr_, Op::write_, Op::copy_file_range_,
                 Op::fallocate_, Op::setxattr_, Op::removexattr_>(seen.op());
}

// Bytes that are fewer than were moved, or contradict their checksum, are none.
void TakeData(const Record& record, Observed* seen) {
  if (!record.HasText(Field::kData)) return;
  const ByteSpan data = AsBytes(record.Text(Field::kData));
  const bool moves = seen->op() == Op::read_ || seen->op() == Op::write_ ||
                     seen->op() == Op::copy_file_range_;
  if (moves && seen->ok() && data.size() < seen->Get(Field::kResult)) return;
  if (moves && seen->ok() && seen->Has(Field::kDataChecksum) &&
      seen->Get32(Field::kDataChecksum) != Crc32c(data)) {
    return;
  }
  seen->data = data;
  if (moves && seen->ok()) {
    seen->data = data.first(static_cast<size_t>(seen->Get(Field::kResult)));
  }
  seen->has_data = true;
}

// The same in events of traces: F_UNLCK.
static_assert(F_UNLCK == 2);

}  // namespace

PlanBuilder::PlanBuilder(const BuilderOptions& options, PlanWriter* out)
    : options_(options), out_(out), lanes_(std::max(options.lanes, 1u)) {
  header_.dir_slots = 1;
  model_.node(kRootNode).touched = true;
}

// --- Who is who.

NodeId PlanBuilder::WalkTo(std::string_view path, bool is_dir) {
  if (!path.starts_with('/')) return kNoNode;
  NodeId at = kRootNode;
  path.remove_prefix(1);
  while (!path.empty()) {
    const size_t end = std::min(path.find('/'), path.size());
    const std::string_view name = path.substr(0, end);
    path.remove_prefix(std::min(end + 1, path.size()));
    if (!IsSafeName(name)) return kNoNode;
    if (const LinkId link = model_.Find(at, name); link != kNoLink) {
      at = model_.link(link).node;
      continue;
    }
    const NodeId id = model_.Add(0);
    model_.node(id).mode =
        !path.empty() || is_dir ? S_IFDIR | 0755 : S_IFREG | 0644;
    model_.AddLink(at, name, id);
    at = id;
  }
  return at;
}

NodeId PlanBuilder::DirOf(const Record& record, Field inode, uint64_t path_id) {
  const uint64_t number = record.event.GetOr0(inode);
  NodeId id = model_.ByInode(number);
  if (id != kNoNode) return id;
  if (path_id == 0 || record.block == nullptr || model_.IsDropped(number)) {
    return kNoNode;
  }
  PathBuffer buffer;
  id = WalkTo(record.block->Path(path_id, {}, buffer), /*is_dir=*/true);
  if (id != kNoNode && number != 0) model_.SetInode(id, number);
  return id;
}

NodeId PlanBuilder::FileOf(const Observed& seen, const Record& record) {
  const uint64_t inode = seen.Get(Field::kInode);
  const bool says_names = seen.Has(Field::kNlink);
  const bool has_names = seen.Get(Field::kNlink) != 0;
  const NodeId id = model_.ByInode(inode);
  // What has no name is not the file that has been given its number since.
  if (id != kNoNode &&
      (!says_names || has_names || model_.node(id).first_link == kNoLink)) {
    return id;
  }
  if (seen.Has(Field::kFh)) {
    const auto handle = handles_.find(seen.Get(Field::kFh));
    if (handle != handles_.end()) return handle->second.node;
  }
  if (says_names ? !has_names : model_.IsDropped(inode)) return kNoNode;
  PathBuffer buffer;
  const std::string_view path = PathOf(record, buffer);
  if (path.empty() || IsGone(path, inode)) return kNoNode;
  const NodeId found =
      WalkTo(path, Info(seen.op()).family == OpFamily::kDirectory);
  if (found != kNoNode && inode != 0) model_.SetInode(found, inode);
  return found;
}

// Whether the file with this path was removed while requests for it still came:
// the path now belongs to another file, or to none in a completely known
// directory.
bool PlanBuilder::IsGone(std::string_view path, uint64_t inode) const {
  NodeId at = kRootNode;
  path.remove_prefix(1);
  while (!path.empty()) {
    const size_t end = std::min(path.find('/'), path.size());
    const LinkId link = model_.Find(at, path.substr(0, end));
    if (link == kNoLink) return model_.node(at).complete;
    at = model_.link(link).node;
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  const uint64_t known = model_.node(at).inode;
  return inode != 0 && known != 0 && known != inode;
}

void PlanBuilder::Learn(NodeId id, const Observed& seen) {
  Node& node = model_.node(id);
  if (seen.Has(Field::kMode)) {
    node.mode = static_cast<uint16_t>(seen.Get(Field::kMode));
    node.known |= TreeEntry::kMode;
  } else if (seen.Has(Field::kType)) {
    node.mode = static_cast<uint16_t>((node.mode & 07777) |
                                      (seen.Get32(Field::kType) & 15) << 12);
  }
  if (seen.op() == Op::setxattr_ && seen.text == kAccessAcl) {
    const auto bits = seen.has_data ? ModeOfAcl(seen.data) : std::nullopt;
    node.mode = static_cast<uint16_t>((node.mode & ~0777) | bits.value_or(0));
    // It may have ended the set-group-ID bit: that depends on who asks.
    if (!bits || (node.mode & S_ISGID) != 0) node.known &= ~TreeEntry::kMode;
  }
  if (seen.Has(Field::kFuid) && seen.Has(Field::kFgid)) {
    node.uid = seen.Get32(Field::kFuid);
    node.gid = seen.Get32(Field::kFgid);
    node.known |= TreeEntry::kOwner;
  }
  if (seen.Has(Field::kSize) && node.changing_until_ns <= seen.begin_ns()) {
    node.size = seen.Get(Field::kSize);
    node.known |= TreeEntry::kSize;
  }
  LearnNames(id, seen);
}

void PlanBuilder::Unlinked(NodeId id) {
  if (id == kRootNode) return;  // it has no name, and stays
  Node& node = model_.node(id);
  if (node.first_link == kNoLink && S_ISDIR(node.mode) &&
      node.slot != kNoSlot && node.open_count == 0) {
    free_dirs_.push_back(std::exchange(node.slot, kNoSlot));
  }
  if (node.first_link == kNoLink && node.open_count == 0) {
    covered_.erase(id);
    made_up_.erase(id);
    checked_.erase(id);
    initial_names_.erase(id);
  }
  model_.DropIfGone(id);
}

void PlanBuilder::KeepInitialName(NodeId id) {
  const Node& node = model_.node(id);
  if (!node.initial || !S_ISREG(node.mode) || node.first_link == kNoLink) {
    return;
  }
  const Link& link = model_.link(node.first_link);
  initial_names_.try_emplace(
      id, InitialName{model_.node(link.parent).slot, link.name});
}

NodeId PlanBuilder::Named(NodeId parent, std::string_view name,
                          const Observed& seen) {
  const uint64_t inode = seen.Get(Field::kInode);
  if (const LinkId link = model_.Find(parent, name); link != kNoLink) {
    const NodeId id = model_.link(link).node;
    if (inode == 0 || model_.node(id).inode == inode) return id;
    if (model_.node(id).inode == 0) {
      model_.SetInode(id, inode);
      return id;
    }
    // It now means another file, and the trace does not show why.
    if (model_.node(id).touched && seen.op() != Op::lookup_) {
      ++lacks_.unseen_changes;
      ++header_.unplaced_changes;
    }
    model_.RemoveLink(link);
    Unlinked(id);
  }
  NodeId id = model_.ByInode(inode);
  if (id == kNoNode) {
    id = model_.Add(inode);
    model_.node(id).mode = S_IFREG | 0644;
  } else if (S_ISDIR(model_.node(id).mode) &&
             model_.node(id).first_link != kNoLink) {
    model_.RemoveLink(model_.node(id).first_link);  // a directory has one name
  } else if (model_.node(id).touched && model_.node(id).initial &&
             out_ != nullptr && model_.node(parent).slot != kNoSlot &&
             model_.node(id).first_link != kNoLink) {
    // A further name of a file that is in the initial tree.
    const Link& first = model_.link(model_.node(id).first_link);
    TreeEntry entry;
    entry.parent = model_.node(parent).slot;
    entry.name = name;
    entry.mode = model_.node(id).mode;
    entry.file = model_.node(id).serial;
    entry.other_parent = model_.node(first.parent).slot;
    entry.other_name = first.name;
    ++header_.initial_entries;
    (void)out_->AddInitial(entry);  // the error stays with the file
  }
  model_.AddLink(parent, name, id);
  return id;
}

// --- Order.

bool PlanBuilder::Agrees(const Observed& seen) const {
  if (!IsByName(seen.op()) || seen.op() == Op::tmpfile_) return true;
  const LinkId link = model_.Find(seen.parent, seen.name);
  const bool present = link != kNoLink;
  if (IsAmong<38, Op::symlink_, Op::mknod_, Op::mkdir_, Op::create_>(
          seen.op())) {
    return seen.ok() ? !present : seen.error() != EEXIST || present;
  }
  if (seen.error() == ENOENT) return !present;
  if (!seen.ok()) return true;
  if (!present) return false;
  const uint64_t inode = seen.Get(Field::kInode);
  const uint64_t known = model_.node(model_.link(link).node).inode;
  return inode == 0 || known == 0 || known == inode;
}

bool PlanBuilder::MustWait(const Observed& seen) const {
  if (seen.Get(Field::kLatency) == 0) return false;
  return Waits(seen) || !Agrees(seen);
}

Status PlanBuilder::Release(uint64_t before_ns, bool all) {
  while (!held_.empty()) {
    const auto first = std::min_element(
        held_.begin(), held_.end(), [](const auto& a, const auto& b) {
          return a->seen.end_ns() < b->seen.end_ns();
        });
    if (!all && (*first)->seen.end_ns() > before_ns &&
        held_.size() <= kMostHeld) {
      return {};
    }
    const std::unique_ptr<KeptObserved> next = std::move(*first);
    held_.erase(first);
    if (Status s = Process(next->seen); !s.ok()) return s;
    if (Status s = ReleaseAgreeing(); !s.ok()) return s;
  }
  return {};
}

Status PlanBuilder::ReleaseAgreeing() {
  for (size_t i = 0; i < held_.size();) {
    if (Waits(held_[i]->seen) || !Agrees(held_[i]->seen)) {
      ++i;
      continue;
    }
    const std::unique_ptr<KeptObserved> next = std::move(held_[i]);
    held_.erase(held_.begin() + static_cast<ptrdiff_t>(i));
    if (Status s = Process(next->seen); !s.ok()) return s;
    i = 0;
  }
  return {};
}

void PlanBuilder::NoteLacks(const Record& record) {
  const Event& event = record.event;
  ++lacks_.operations;
  if (!event.Has(Field::kTime)) ++lacks_.without_time;
  if (!event.Has(Field::kLatency)) ++lacks_.without_duration;
  if (!event.Has(Field::kResult)) ++lacks_.without_result;
  if (!event.Has(Field::kTid)) ++lacks_.without_thread;
  if (!event.Has(Field::kUid)) ++lacks_.without_user;
  const bool by_name = IsByName(event.op);
  const bool has_path = event.node != 0 || event.parent != 0;
  if (by_name ? !event.Has(Field::kParentInode) : !event.Has(Field::kInode)) {
    ++lacks_.without_inode;
    if (!has_path) ++lacks_.without_path;
  }
  const bool transfers = event.op == Op::read_ || event.op == Op::write_;
  const bool ok = !event.Has(Field::kErrno) || event.Get(Field::kErrno) == 0;
  if ((transfers || event.op == Op::release_) && !event.Has(Field::kFh)) {
    ++lacks_.without_handle;
  }
  if (transfers && !event.Has(Field::kOffset)) ++lacks_.without_arguments;
  if (event.op == Op::setattr_ && !event.Has(Field::kValid)) {
    ++lacks_.without_arguments;
  }
  // Bytes that are fewer than were moved are none.
  const uint64_t done = event.GetOr0(Field::kResult);
  const bool has_data =
      record.HasText(Field::kData) && record.Text(Field::kData).size() >= done;
  if (event.op == Op::write_ && ok && !has_data) ++lacks_.writes_without_data;
  if (event.op == Op::read_ && ok && !has_data &&
      !event.Has(Field::kDataChecksum)) {
    ++lacks_.reads_without_hash;
  }
  if (event.op == Op::setxattr_ && ok && !record.HasText(Field::kData)) {
    ++lacks_.xattrs_without_value;
  }
}

Status PlanBuilder::Take(const Record& record, bool selected, bool marked) {
  if (record.event.before) return {};
  ++sequence_;
  NoteLacks(record);
  Observed seen;
  seen.event = &record.event;
  seen.sequence = sequence_;
  seen.selected = selected;
  seen.marked = marked;
  if (!begun_) {
    begun_ = true;
    first_ns_ = seen.begin_ns();
    header_.first_real_ns = record.real_ns;
  }
  if (Status s = Release(seen.begin_ns(), false); !s.ok()) return s;

  const Op op = seen.op();
  seen.name = record.Text(Field::kName);
  seen.new_name = record.Text(Field::kNewName);
  seen.text = record.HasText(Field::kTarget) ? record.Text(Field::kTarget)
                                             : record.Text(Field::kXattrName);
  TakeData(record, &seen);
  if (IsByName(op)) {
    seen.parent = DirOf(record, Field::kParentInode, record.event.parent);
    if (op != Op::tmpfile_ && !IsSafeName(seen.name)) return Unplaced(seen);
    if (seen.parent == kNoNode) return Unplaced(seen);
  }
  if (op == Op::rename_ || op == Op::link_) {
    seen.new_parent =
        DirOf(record, Field::kNewParentInode, record.event.new_parent);
    if (seen.new_parent == kNoNode || !IsSafeName(seen.new_name)) {
      return Unplaced(seen);
    }
  }
  if (!IsByName(op)) {
    seen.file = FileOf(seen, record);
    if (seen.file == kNoNode && op != Op::statfs_) return Unplaced(seen);
  }
  if (MustWait(seen)) {
    held_.push_back(std::make_unique<KeptObserved>(seen));
    return {};
  }
  if (Status s = Process(seen); !s.ok()) return s;
  return held_.empty() ? Status() : ReleaseAgreeing();
}

Status PlanBuilder::Process(const Observed& seen) {
  const NodeId file = seen.file;
  switch (seen.op()) {
    case Op::lookup_:
      return DoName(seen);
    case Op::mknod_:
    case Op::mkdir_:
    case Op::symlink_:
    case Op::create_:
    case Op::tmpfile_:
      return DoMake(seen);
    case Op::unlink_:
    case Op::rmdir_:
      return DoRemove(seen);
    case Op::rename_:
      return DoRename(seen);
    case Op::link_:
      return DoLink(seen, file);
    case Op::open_:
    case Op::opendir_:
      return DoOpen(seen, file);
    case Op::read_:
    case Op::write_:
      return DoTransfer(seen, file);
    case Op::copy_file_range_:
      return DoCopy(seen, file);
    case Op::release_:
    case Op::releasedir_:
      return DoClose(seen, file);
    case Op::setattr_:
      return DoSetattr(seen, file);
    case Op::setlk_:
    case Op::flock_:
    case Op::flush_:
      return DoLock(seen, file);
    case Op::getlk_:
    case Op::ioctl_:
    case Op::poll_:
      ++lacks_.not_replayed;
      return {};
    case Op::getattr_:
    case Op::readlink_:
    case Op::fsync_:
    case Op::readdir_:
    case Op::fsyncdir_:
    case Op::statfs_:
    case Op::setxattr_:
    case Op::getxattr_:
    case Op::listxattr_:
    case Op::removexattr_:
    case Op::access_:
    case Op::fallocate_:
    case Op::lseek_:
    case Op::statx_:
      break;
  }
  return DoFile(seen, file);
}

// --- Putting it down.

// Whether it is about a file that can no longer be found: its fate is in no
// tree.
bool PlanBuilder::HasNoName(const Observed& seen) const {
  if (IsByName(seen.op()) || seen.op() == Op::link_) return false;
  if (seen.Has(Field::kNlink) && seen.Get(Field::kNlink) == 0) return true;
  return seen.file == kNoNode
             ? model_.IsDropped(seen.Get(Field::kInode))
             : seen.file != kRootNode &&
                   model_.node(seen.file).first_link == kNoLink;
}

Status PlanBuilder::Unplaced(const Observed& seen) {
  ++header_.unplaced;
  ++lacks_.unplaced;
  if (seen.ok() && ChangesFiles(seen) && !HasNoName(seen)) {
    ++header_.unplaced_changes;
    ++lacks_.unplaced_changes;
  }
  return {};
}

Action PlanBuilder::Common(const Observed& seen) {
  Action a;
  a.sequence = seen.sequence;
  a.begin_ns = seen.begin_ns() - std::min(first_ns_, seen.begin_ns());
  a.duration_ns = seen.Get(Field::kLatency);
  a.op = seen.op();
  a.uid = seen.Get32(Field::kUid);
  a.gid = seen.Get32(Field::kGid);
  a.result = static_cast<int64_t>(seen.Get(Field::kResult));
  a.error = seen.error();
  a.lane = lanes_.Of(seen.Get32(Field::kTid), seen.begin_ns(), seen.end_ns());
  if (!seen.selected) a.flags |= kUntimed;
  if (seen.marked) a.flags |= kMarked;
  if (seen.ok() && seen.Has(Field::kMode) && seen.Has(Field::kSize)) {
    a.flags |= kHasStat;
    a.stat_mode = seen.Get32(Field::kMode);
    a.stat_size = seen.Get(Field::kSize);
    a.stat_nlink = seen.Get32(Field::kNlink);
  }
  if (seen.marked && seen.ok()) NoteKept(seen, &a);
  order_.Begin(a.lane);
  return a;
}

bool PlanBuilder::Wanted(const Observed& seen, NodeId a, NodeId b) const {
  if (seen.selected || options_.closure == Closure::kInclude) return true;
  if (options_.closure == Closure::kNone) return false;
  // What the plan has to do with changes in its course, whoever changes it.
  const auto in_plan = [&](NodeId id) {
    return id != kNoNode && id != kRootNode && model_.node(id).touched;
  };
  return in_plan(a) || in_plan(b);
}

uint32_t PlanBuilder::NewSlot(std::vector<uint32_t>* free, uint32_t* count) {
  if (!free->empty()) {
    const uint32_t slot = free->back();
    free->pop_back();
    return slot;
  }
  return (*count)++;
}

bool PlanBuilder::PlaceAt(NodeId id, Action* action) {
  Node& node = model_.node(id);
  if (S_ISDIR(node.mode)) {
    if (node.slot == kNoSlot) return false;
    action->place = Place::kDir;
    action->dir = node.slot;
    return true;
  }
  if (node.first_link != kNoLink) {
    const Link& link = model_.link(node.first_link);
    action->dir = model_.node(link.parent).slot;
    if (action->dir == kNoSlot) return false;
    action->place = Place::kName;
    action->name = link.name;
    return true;
  }
  if (node.open_handle == kNoSlot && node.open_count != 0) {
    // The one that was known is closed, others are not.
    for (const auto& [fh, handle] : handles_) {
      if (handle.node == id && !handle.is_dir) node.open_handle = handle.slot;
    }
  }
  if (node.open_handle == kNoSlot) return false;
  action->place = Place::kHandle;
  action->handle = node.open_handle;
  return true;
}

void PlanBuilder::UseOf(const Action& action, NodeId id, UseKind kind) {
  order_.Use(Resource::kFile, id, kind);
  if (action.place == Place::kDir || action.place == Place::kName) {
    order_.Use(Resource::kDirectory, action.dir, UseKind::kShared);
  }
  if (action.place == Place::kHandle) {
    order_.Use(Resource::kHandle, action.handle, UseKind::kShared);
  }
}

void PlanBuilder::UseName(NodeId parent, std::string_view name, UseKind kind,
                          bool changes) {
  const uint32_t slot = model_.node(parent).slot;
  const uint64_t hash =
      std::hash<std::string_view>()(name) * 0x9e3779b97f4a7c15 + slot;
  order_.Use(Resource::kName, hash, kind);
  order_.Use(Resource::kDirectory, slot, UseKind::kShared);
  if (changes) order_.Use(Resource::kListing, slot, UseKind::kChange);
}

Status PlanBuilder::Emit(Action* action) {
  NotePrivileges(*action);
  order_.End(action);
  ++header_.actions;
  if (action->sequence != 0) ++header_.operations;
  header_.span_ns =
      std::max(header_.span_ns, action->begin_ns + action->duration_ns);
  return out_ == nullptr ? Status() : out_->Add(*action);
}

Status PlanBuilder::Finish() {
  if (Status s = Release(0, /*all=*/true); !s.ok()) return s;
  if (!state_status_.ok()) return state_status_;
  header_.lanes = std::max(lanes_.count(), 1u);
  CollectUnknown();
  header_.without_data = lacks_.writes_without_data;
  header_.unknown_content = lacks_.files_without_content;
  if (out_ == nullptr) return {};
  for (const auto& [id, entry] : links_before_) {
    if (Status s = out_->AddInitial(entry); !s.ok()) return s;
  }
  return WriteFinal();
}

}  // namespace tracefs::replay
