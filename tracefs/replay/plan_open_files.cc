// PlanBuilder: files that were open when the tracer began (STR_REPLAY). The
// plan opens them first of all, whatever becomes of their names later.
#include <fcntl.h>
#include <linux/fuse.h>
#include <sys/stat.h>

#include <string>

#include "tracefs/format/state_message.h"
#include "tracefs/replay/plan_builder.h"

namespace tracefs::replay {

NodeId PlanBuilder::NodeOfOpen(const Observed& seen, std::string_view path) {
  const uint64_t inode = seen.Get(Field::kInode);
  const uint32_t mode = seen.Get32(Field::kMode);
  NodeId id = model_.ByInode(inode);
  if (id == kNoNode && !path.empty()) {
    id = WalkTo(path, S_ISDIR(mode));
    if (id == kNoNode) return kNoNode;
    model_.SetInode(id, inode);
  }
  // Without a name only a file can be made again.
  if (id == kNoNode && S_ISREG(mode) && seen.Get(Field::kNlink) == 0) {
    id = model_.Add(inode);
  }
  if (id != kNoNode && !model_.node(id).touched) Learn(id, seen);
  return id;
}

// A file that had lost its name: it has one until it is open, so that bytes
// that are read of it can be there.
Status PlanBuilder::MakeNameless(const Observed& seen, NodeId file,
                                 uint32_t slot) {
  Node& node = model_.node(file);
  const std::string name = ".tracefs-nameless-" + std::to_string(node.serial);
  node.touched = true;
  node.initial = true;
  initial_names_[file] = {kRootSlot, name};
  ++header_.initial_entries;
  header_.initial_bytes += node.size;
  if (out_ != nullptr) {
    TreeEntry entry;
    entry.name = name;
    entry.mode = node.mode;
    entry.uid = node.uid;
    entry.gid = node.gid;
    entry.size = node.size;
    entry.file = node.serial;
    entry.known = node.known | TreeEntry::kNameless;
    if (Status s = out_->AddInitial(entry); !s.ok()) return s;
  }
  for (const Op op : {Op::open_, Op::unlink_}) {
    Action a = CommonOfMadeUp(seen, op);
    // Whose it is does not matter: it was open.
    a.uid = a.gid = 0;
    a.place = Place::kName;
    a.dir = kRootSlot;
    a.name = name;
    a.file = node.serial;
    order_.Use(Resource::kDirectory, kRootSlot, UseKind::kShared);
    order_.Use(Resource::kFile, file, UseKind::kAlone);
    if (op == Op::open_) {
      a.arg_flags = O_RDWR;
      a.handle = slot;
      order_.Use(Resource::kHandle, slot, UseKind::kAlone);
    }
    if (Status s = Emit(&a); !s.ok()) return s;
  }
  return {};
}

Action PlanBuilder::CommonOfMadeUp(const Observed& seen, Op op) {
  Action a = Common(seen);
  if (!begun_) a.begin_ns = 0;
  a.op = op;
  a.flags = kUntimed;
  return a;
}

Status PlanBuilder::TakeOpenFile(const format::StateRecord& state) {
  Observed seen;
  seen.event = &state.file->event;
  const uint64_t fh = seen.Get(Field::kFh);
  // Or its opening was recorded as well.
  if (fh == 0 || handles_.contains(fh)) return {};
  if (model_.ByInode(seen.Get(Field::kInode)) == kNoNode) KeepState(state);
  const NodeId file = NodeOfOpen(seen, state.file->Text(Field::kPath));
  if (file == kNoNode) return {};
  if (Status s = Ensure(file); !s.ok()) return s;
  Node& node = model_.node(file);
  const bool is_dir = S_ISDIR(node.mode);
  const bool nameless =
      node.first_link == kNoLink && !is_dir && node.open_handle == kNoSlot;
  const uint32_t slot = NewSlot(&free_handles_, &header_.handle_slots);
  if (nameless) {
    if (Status s = MakeNameless(seen, file, slot); !s.ok()) return s;
  } else {
    Action a = CommonOfMadeUp(seen, is_dir ? Op::opendir_ : Op::open_);
    if (!PlaceAt(file, &a)) {
      free_handles_.push_back(slot);
      return {};
    }
    a.arg_flags = seen.Get32(Field::kFlags) & O_ACCMODE;
    UseOf(a, file, UseKind::kShared);
    if (a.place == Place::kHandle) a.handle_out = a.handle;
    a.handle = slot;
    order_.Use(Resource::kHandle, slot, UseKind::kAlone);
    if (Status s = Emit(&a); !s.ok()) return s;
  }
  ++lacks_.handles_known;
  ++node.open_count;
  if (!is_dir) node.open_handle = slot;
  handles_[fh] = {slot, file, is_dir};
  return {};
}

}  // namespace tracefs::replay
