// StracePass: calls that make, move and remove names.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "tracefs/import/strace_pass.h"

namespace tracefs::import {
namespace {

// "/proc/self/fd/17"
std::optional<int64_t> ProcDescriptor(std::string_view token) {
  constexpr std::string_view kFolder = "\"/proc/self/fd/";
  if (!token.starts_with(kFolder) || !token.ends_with('"')) return {};
  return DecodeNumber(
      token.substr(kFolder.size(), token.size() - kFolder.size() - 1));
}

// "makedev(0x1, 0x3)"
uint64_t DecodeDevice(std::string_view token) {
  const size_t open = token.find('(');
  const size_t comma = token.find(", ");
  if (open == token.npos || comma == token.npos) return 0;
  const auto one = DecodeNumber(token.substr(open + 1, comma - open - 1));
  const auto two = DecodeNumber(token.substr(
      comma + 2, token.size() - std::min(comma + 3, token.size())));
  return makedev(static_cast<unsigned>(one.value_or(0)),
                 static_cast<unsigned>(two.value_or(0)));
}

}  // namespace

// kMakeLink, kMakeNode, or none of them: a directory.
void StracePass::DoMake(uint32_t variant) {
  if (!ok() && IsKernels()) return;
  const bool at = (variant & kAt) != 0;
  const bool is_link = (variant & kMakeLink) != 0;
  const size_t dir_at = is_link ? 1 : 0;
  const size_t path_at = dir_at + (at ? 1 : 0);
  std::string target;
  bool cut = false;
  if (is_link && (!DecodeString(arg(0), &target, &cut) || cut)) {
    return LeaveOut("a name that strace cut (-s)");
  }
  const std::string path = PathOf(path_at, at ? static_cast<int>(dir_at) : -1);
  const Op op = is_link                      ? Op::symlink_
                : (variant & kMakeNode) != 0 ? Op::mknod_
                                             : Op::mkdir_;
  if (!ok()) {
    Spot spot = tree_.Find(path, /*follow=*/false);
    if (error_ == EEXIST) {
      spot = Reach(path, /*follow=*/false,
                   op == Op::mkdir_ ? S_IFDIR | 0755 : S_IFREG | 0644);
    }
    if (spot.name.empty() || spot.state == Spot::State::kUnknown) {
      return LeaveOut("names in directories that nobody has seen");
    }
    Event event = Make(op);
    In(spot.parent, spot.name, &event);
    event.target = target;
    return Emit(&event);
  }
  const Spot spot = ReachParent(path);
  using State = Spot::State;
  if (spot.state != State::kMissing && spot.state != State::kFound) return;
  auto mode = static_cast<uint32_t>(DecodeFlags(arg(path_at + 1)));
  uint32_t type = S_IFDIR;
  if (is_link) {
    type = S_IFLNK;
    mode = 0777;
  } else if (op == Op::mknod_) {
    type = (mode & S_IFMT) == 0 ? S_IFREG : mode & S_IFMT;
  }
  const uint32_t kept = mode & ~thread_->surroundings->umask & 07777;
  const NodeId node = tree_.Make(type | kept);
  Event event = Make(op);
  In(spot.parent, spot.name, &event);
  About(node, &event);
  event.node = 0;
  if (is_link) {
    event.target = target;
  } else {
    event.Set(Field::kArgMode, op == Op::mkdir_ ? mode : type | (mode & 07777));
    event.Set(Field::kUmask, thread_->surroundings->umask);
  }
  if (op == Op::mknod_) event.Set(Field::kRdev, DecodeDevice(arg(path_at + 2)));
  tree_.Link(spot.parent, spot.name, node);
  if (is_link) tree_.SetTarget(node, target);
  Emit(&event);
}

// kOther: rmdir.
void StracePass::DoRemove(uint32_t variant) {
  if (!ok() && IsKernels()) return;
  const bool at = variant == kAt;
  const std::string path = PathOf(at ? 1 : 0, at ? 0 : -1);
  const bool is_dir =
      variant == kOther || (at && (DecodeFlags(arg(2)) & AT_REMOVEDIR) != 0);
  if (error_ == ENOENT) return Missing(path, /*follow=*/false);
  const Spot spot =
      Reach(path, /*follow=*/false, is_dir ? S_IFDIR | 0755 : S_IFREG | 0644);
  if (spot.node == kNoNode || spot.name.empty()) return;
  Event event = Make(is_dir ? Op::rmdir_ : Op::unlink_);
  In(spot.parent, spot.name, &event);
  About(spot.node, &event);
  event.node = 0;
  Emit(&event);
  if (ok()) tree_.Unlink(spot.parent, spot.name);
}

void StracePass::DoRename(uint32_t variant) {
  if (!ok() && IsKernels()) return;
  const bool at = (variant & kAt) != 0;
  const std::string from = PathOf(at ? 1 : 0, at ? 0 : -1);
  const std::string to = PathOf(at ? 3 : 1, at ? 2 : -1);
  const uint64_t flags = (variant & kFlags) != 0 ? DecodeFlags(arg(4)) : 0;
  if (from.empty() || to.empty()) return;
  if (error_ == ENOENT) return Missing(from, /*follow=*/false);
  const Spot moved = Reach(from, /*follow=*/false, S_IFREG | 0644);
  if (moved.node == kNoNode || moved.name.empty()) {
    if (ok() && tree_.Find(to, false).state != Spot::State::kOutside) {
      LeaveOut("files that were moved in from outside");
    }
    return;
  }
  const Spot place = ReachParent(to);
  using State = Spot::State;
  if (place.state != State::kMissing && place.state != State::kFound) {
    if (!ok()) return;
    LeaveOut("files that were moved out: they are removed");
    Event event =
        Make(S_ISDIR(tree_.node(moved.node).mode) ? Op::rmdir_ : Op::unlink_);
    In(moved.parent, moved.name, &event);
    About(moved.node, &event);
    event.node = 0;
    Emit(&event);
    return tree_.Unlink(moved.parent, moved.name);
  }
  Event event = Make(Op::rename_);
  In(moved.parent, moved.name, &event);
  About(moved.node, &event);
  event.node = 0;
  event.new_parent = tree_.InodeOf(place.parent);
  event.new_name = place.name;
  event.Set(Field::kNewParentInode, event.new_parent);
  event.Set(Field::kFlags, flags);
  Emit(&event);
  if (ok()) {
    tree_.Rename(moved.parent, moved.name, place.parent, place.name,
                 (flags & 2) != 0);
  }
}

void StracePass::DoLink(uint32_t variant) {
  if (!ok() && IsKernels()) return;
  const bool at = variant == kAt;
  const uint64_t flags = at ? DecodeFlags(arg(4)) : 0;
  NodeId node = kNoNode;
  const auto descriptor = ProcDescriptor(arg(at ? 1 : 0));
  if (descriptor && (flags & AT_SYMLINK_FOLLOW) != 0) {
    const auto& slots = thread_->descriptors->slots;
    const auto slot = slots.find(*descriptor);
    if (slot != slots.end()) node = slot->second.file->node;
  } else if (at && arg(1) == "\"\"") {
    if (const OpenFilePtr file = FileAt(0)) node = file->node;
  } else {
    const std::string from = PathOf(at ? 1 : 0, at ? 0 : -1);
    if (error_ == ENOENT) return Missing(from, /*follow=*/false);
    node = Reach(from, (flags & AT_SYMLINK_FOLLOW) != 0, S_IFREG | 0644).node;
  }
  const std::string to = PathOf(at ? 3 : 1, at ? 2 : -1);
  const Spot place = error_ == EEXIST
                         ? Reach(to, /*follow=*/false, S_IFREG | 0644)
                         : ReachParent(to);
  using State = Spot::State;
  if (node == kNoNode || place.name.empty() ||
      (place.state != State::kMissing && place.state != State::kFound)) {
    return LeaveOut("links to what is not known");
  }
  Event event = Make(Op::link_);
  About(node, &event);
  event.new_parent = tree_.InodeOf(place.parent);
  event.new_name = place.name;
  event.Set(Field::kNewParentInode, event.new_parent);
  Emit(&event);
  if (ok()) tree_.Link(place.parent, place.name, node);
}

}  // namespace tracefs::import
