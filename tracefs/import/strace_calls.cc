// StracePass: calls on names and attributes.
#include <fcntl.h>
#include <linux/fuse.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <utility>

#include "tracefs/base/clock.h"
#include "tracefs/import/strace_pass.h"

namespace tracefs::import {
namespace {

// Which arguments a call has where: with a directory's descriptor before each
// path, or not; or a descriptor alone.
enum Variant { kPlain, kAt, kFd, kLinkItself };

// Of opens, once the file is made.
constexpr uint32_t kOpenOnly = O_CREAT | O_EXCL | O_NOCTTY;

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

// variant: 0 open, 1 openat, 2 creat, 3 openat2
void StracePass::DoOpen(int variant) {
  const bool at = variant == 1 || variant == 3;
  const size_t path_at = at ? 1 : 0;
  const size_t flags_at = path_at + 1;
  std::string path = PathOf(path_at, at ? 0 : -1);
  uint32_t flags = O_CREAT | O_WRONLY | O_TRUNC;
  auto mode = static_cast<uint32_t>(Unsigned(path_at + 2));
  if (variant == 2) {
    mode = static_cast<uint32_t>(Unsigned(1));
  } else if (variant == 3) {
    flags = static_cast<uint32_t>(DecodeFlags(Member(arg(flags_at), "flags")));
    mode = static_cast<uint32_t>(DecodeFlags(Member(arg(flags_at), "mode")));
  } else {
    flags = static_cast<uint32_t>(DecodeFlags(arg(flags_at)));
  }
  if (!ok()) return OpenFailed(path, flags);
  const bool nameless = (flags & O_TMPFILE) == O_TMPFILE;
  DescriptorArgument made;
  if (!DecodeDescriptor(call_.result, &made) || made.number < 0) return;
  // What was there is gone, whatever we make of this.
  Detach(made.number);
  // Where it led to in the end, with all links followed.
  if (made.has_path && !made.deleted && !nameless) path = made.path;
  if ((flags & O_PATH) != 0) {
    (void)Reach(path, (flags & O_NOFOLLOW) == 0,
                (flags & O_DIRECTORY) != 0 ? S_IFDIR | 0755 : S_IFREG | 0644);
    return;
  }
  mode |= S_IFREG;
  if (nameless) {
    const Spot dir = Reach(path, /*follow=*/true, S_IFDIR | 0755);
    if (dir.node == kNoNode) return;
    const NodeId node = tree_.Make(mode & ~thread_->surroundings->umask);
    Event event = Make(Op::tmpfile_);
    In(dir.node, {}, &event);
    About(node, &event);
    event.node = 0;
    event.Set(Field::kArgMode, mode);
    event.Set(Field::kUmask, thread_->surroundings->umask);
    return NewFile(made.number, node, flags, /*is_dir=*/false, &event);
  }
  if ((flags & O_CREAT) != 0) {
    Spot spot = ReachParent(path);
    if (spot.state == Spot::State::kFound) {
      spot = tree_.Find(path, /*follow=*/true);
    }
    if (spot.state == Spot::State::kMissing) {
      // Whether it was there shows later, in the first pass.
      const bool open_question = (flags & (O_EXCL | O_TRUNC)) == 0;
      const NodeId node = tree_.Make(mode & ~thread_->surroundings->umask);
      const auto found = found_->find(tree_.InodeOf(node));
      const bool existed = !first() && open_question &&
                           found != found_->end() && found->second.existed;
      if (existed) {
        AnnounceAs(node, spot.parent, spot.name);
        Guess("files that O_CREAT found, as their contents show");
      } else {
        if (open_question && first()) {
          maybe_new_.insert(tree_.InodeOf(node));
        }
        if (open_question && !first()) Guess("files that O_CREAT made new");
        Event event = Make(Op::create_);
        In(spot.parent, spot.name, &event);
        About(node, &event);
        event.node = 0;
        event.Set(Field::kArgMode, mode);
        event.Set(Field::kUmask, thread_->surroundings->umask);
        tree_.Link(spot.parent, spot.name, node);
        return NewFile(made.number, node, flags, /*is_dir=*/false, &event);
      }
    } else if (spot.state != Spot::State::kFound) {
      return;
    }
  }
  const bool wants_dir = (flags & O_DIRECTORY) != 0;
  const Spot spot =
      Reach(path, /*follow=*/true, wants_dir ? S_IFDIR | 0755 : S_IFREG | 0644);
  if (spot.node == kNoNode) return;
  const bool is_dir = wants_dir || S_ISDIR(tree_.node(spot.node).mode);
  if ((flags & O_TRUNC) != 0 && !is_dir) {
    tree_.node(spot.node).size = 0;
    Changed(spot.node);
  }
  Event event = Make(is_dir ? Op::opendir_ : Op::open_);
  About(spot.node, &event);
  NewFile(made.number, spot.node, flags & ~kOpenOnly, is_dir, &event);
}

void StracePass::OpenFailed(const std::string& path, uint32_t flags) {
  if (path.empty() || IsKernels()) return;
  if (error_ == ENOENT) return Missing(path, /*follow=*/true);
  Spot spot = tree_.Find(path, /*follow=*/true);
  if (error_ == EEXIST && (flags & O_CREAT) != 0) {
    spot = Reach(path, /*follow=*/false, S_IFREG | 0644);
    if (spot.node == kNoNode || spot.name.empty()) return;
    Event event = Make(Op::create_);
    In(spot.parent, spot.name, &event);
    event.Set(Field::kFlags, flags);
    event.Set(Field::kArgMode, S_IFREG | 0644);
    return Emit(&event);
  }
  if (spot.state != Spot::State::kFound) {
    return LeaveOut("opens of unknown files that failed");
  }
  Event event =
      Make(S_ISDIR(tree_.node(spot.node).mode) ? Op::opendir_ : Op::open_);
  About(spot.node, &event);
  event.Set(Field::kFlags, flags & ~kOpenOnly);
  Emit(&event);
}

// variant: 0 stat, 1 newfstatat, 2 fstat, 3 lstat, 4 statx
void StracePass::DoStat(int variant) {
  const bool at = variant == 1 || variant == 4;
  const size_t flags_at = variant == 4 ? 2 : 3;
  const uint64_t flags = at ? DecodeFlags(arg(flags_at)) : 0;
  const bool follow = variant != 3 && (flags & AT_SYMLINK_NOFOLLOW) == 0;
  const std::string_view stat = arg(variant == 4 ? 4 : at ? 2 : 1);
  const bool by_descriptor =
      variant == 2 || (at && (arg(1) == "\"\"" || arg(1) == "NULL"));
  DescriptorArgument given;
  const bool folder = by_descriptor && at && DecodeDescriptor(arg(0), &given) &&
                      given.number == DescriptorArgument::kWorkingDirectory;
  if (!ok()) {
    if (IsKernels()) return;
    if (error_ == ENOENT && !by_descriptor) {
      return Missing(PathOf(at ? 1 : 0, at ? 0 : -1), follow);
    }
    return LeaveOut("attributes that were refused");
  }
  std::string_view mode = Member(stat, "st_mode");
  if (mode.empty()) mode = Member(stat, "stx_mode");
  const uint32_t type =
      mode.empty() ? S_IFREG | 0644 : static_cast<uint32_t>(DecodeFlags(mode));
  NodeId node = kNoNode;
  OpenFilePtr file;
  if (folder) {
    node = Reach(given.path, /*follow=*/true, type).node;
  } else if (by_descriptor) {
    file = FileAt(0);
    if (file != nullptr) node = file->node;
    if (node == kNoNode && DecodeDescriptor(arg(0), &given) && given.has_path &&
        !given.deleted && given.path.starts_with('/')) {
      node = tree_.Find(given.path, /*follow=*/false).node;
    }
  } else {
    node = NodeAt(at ? 1 : 0, at ? 0 : -1, follow, type);
  }
  if (node == kNoNode) return;
  Note(node, stat);
  Event event = Make(Op::getattr_);
  About(node, &event);
  if (file != nullptr && tree_.node(node).first_link == replay::kNoLink) {
    event.Set(Field::kFh, file->fh);  // it has no name
  }
  if (!mode.empty()) {
    event.Set(Field::kMode, tree_.node(node).mode);
    event.Set(Field::kType, tree_.node(node).mode >> 12);
    event.Set(Field::kSize, tree_.node(node).size);
    std::string_view links = Member(stat, "st_nlink");
    if (links.empty()) links = Member(stat, "stx_nlink");
    if (!links.empty()) {
      event.Set(Field::kNlink,
                static_cast<uint64_t>(DecodeNumber(links).value_or(0)));
    }
  }
  event.SetResult(0, 0);
  Emit(&event);
}

// variant: kPlain access, kAt faccessat
void StracePass::DoAccess(int variant) {
  const size_t path_at = variant == kAt ? 1 : 0;
  const std::string path = PathOf(path_at, variant == kAt ? 0 : -1);
  if (!ok() && IsKernels()) return;
  if (error_ == ENOENT) return Missing(path, /*follow=*/true);
  const Spot spot = Reach(path, /*follow=*/true, S_IFREG | 0644);
  if (spot.node == kNoNode) return;
  Event event = Make(Op::access_);
  About(spot.node, &event);
  event.Set(Field::kArgMode, DecodeFlags(arg(path_at + 1)));
  Emit(&event);
}

void StracePass::DoReadlink(int variant) {
  const size_t path_at = variant == kAt ? 1 : 0;
  const std::string path = PathOf(path_at, variant == kAt ? 0 : -1);
  if (!ok() && IsKernels()) return;
  if (error_ == ENOENT) return Missing(path, /*follow=*/false);
  if (!ok()) return LeaveOut("links that were refused");
  const Spot spot = Reach(path, /*follow=*/false, S_IFLNK | 0777);
  bool cut = false;
  if (spot.node == kNoNode || !DecodeString(arg(path_at + 1), &data_, &cut)) {
    return;
  }
  // The buffer may have been too small for it.
  const bool whole =
      !cut && static_cast<uint64_t>(result_) < Unsigned(path_at + 2);
  if (whole) tree_.SetTarget(spot.node, data_);
  Event event = Make(Op::readlink_);
  About(spot.node, &event);
  if (whole) event.target = data_;
  Emit(&event);
}

// variant: 0 mkdir, 1 mkdirat, 2 symlink, 3 symlinkat, 4 mknod, 5 mknodat
void StracePass::DoMake(int variant) {
  if (!ok() && IsKernels()) return;
  const bool at = variant % 2 == 1;
  const bool is_link = variant == 2 || variant == 3;
  const size_t dir_at = is_link ? 1 : 0;
  const size_t path_at = dir_at + (at ? 1 : 0);
  std::string target;
  bool cut = false;
  if (is_link && (!DecodeString(arg(0), &target, &cut) || cut)) {
    return LeaveOut("a name that strace cut (-s)");
  }
  const std::string path = PathOf(path_at, at ? static_cast<int>(dir_at) : -1);
  const Op op = variant < 2 ? Op::mkdir_ : is_link ? Op::symlink_ : Op::mknod_;
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

// variant: 0 unlink, 1 unlinkat, 2 rmdir
void StracePass::DoRemove(int variant) {
  if (!ok() && IsKernels()) return;
  const bool at = variant == 1;
  const std::string path = PathOf(at ? 1 : 0, at ? 0 : -1);
  const bool is_dir =
      variant == 2 || (at && (DecodeFlags(arg(2)) & AT_REMOVEDIR) != 0);
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

// variant: 0 rename, 1 renameat, 2 renameat2
void StracePass::DoRename(int variant) {
  if (!ok() && IsKernels()) return;
  const bool at = variant != 0;
  const std::string from = PathOf(at ? 1 : 0, at ? 0 : -1);
  const std::string to = PathOf(at ? 3 : 1, at ? 2 : -1);
  const uint64_t flags = variant == 2 ? DecodeFlags(arg(4)) : 0;
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

// variant: kPlain link, kAt linkat
void StracePass::DoLink(int variant) {
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

void StracePass::Setattr(NodeId node, uint32_t valid, Event* event) {
  About(node, event);
  event->Set(Field::kValid, valid);
  Emit(event);
}

// variant: kPlain chmod, kAt fchmodat, kFd fchmod
void StracePass::DoMode(int variant) {
  if (!ok()) {
    if (!IsKernels()) LeaveOut("changes of attributes that were refused");
    return;
  }
  NodeId node = kNoNode;
  if (variant == kFd) {
    if (const OpenFilePtr file = FileAt(0)) node = file->node;
  } else {
    node = NodeAt(variant == kAt ? 1 : 0, variant == kAt ? 0 : -1,
                  /*follow=*/true, S_IFREG | 0644);
  }
  if (node == kNoNode) return;
  const auto mode =
      static_cast<uint32_t>(DecodeFlags(arg(variant == kAt ? 2 : 1)));
  Event event = Make(Op::setattr_);
  event.Set(Field::kArgMode, mode & 07777);
  replay::Node& known = tree_.node(node);
  known.mode = static_cast<uint16_t>((known.mode & S_IFMT) | (mode & 07777));
  known.known |= kModeKnown;
  Setattr(node, FATTR_MODE, &event);
}

// variant: kPlain chown, kAt fchownat, kFd fchown, kLinkItself lchown
void StracePass::DoOwner(int variant) {
  if (!ok()) {
    if (!IsKernels()) LeaveOut("changes of attributes that were refused");
    return;
  }
  const size_t first_at = variant == kAt ? 2 : 1;
  NodeId node = kNoNode;
  const bool by_descriptor =
      variant == kFd || (variant == kAt && arg(1) == "\"\"");
  if (by_descriptor) {
    if (const OpenFilePtr file = FileAt(0)) node = file->node;
  } else {
    const bool follow =
        variant != kLinkItself &&
        !(variant == kAt && (DecodeFlags(arg(4)) & AT_SYMLINK_NOFOLLOW) != 0);
    node = NodeAt(variant == kAt ? 1 : 0, variant == kAt ? 0 : -1, follow,
                  S_IFREG | 0644);
  }
  if (node == kNoNode) return;
  Event event = Make(Op::setattr_);
  uint32_t valid = 0;
  if (arg(first_at) != "-1") {
    valid |= FATTR_UID;
    event.Set(Field::kNewUid, static_cast<uint32_t>(Unsigned(first_at)));
  }
  if (arg(first_at + 1) != "-1") {
    valid |= FATTR_GID;
    event.Set(Field::kNewGid, static_cast<uint32_t>(Unsigned(first_at + 1)));
  }
  if (valid != 0) Setattr(node, valid, &event);
}

// variant: 0 utime, 1 utimensat, 2 utimes, 3 futimesat
void StracePass::DoTimes(int variant) {
  if (!ok()) {
    if (!IsKernels()) LeaveOut("changes of attributes that were refused");
    return;
  }
  const bool at = variant == 1 || variant == 3;
  const std::string_view times = arg(at ? 2 : 1);
  const bool follow =
      variant != 1 || (DecodeFlags(arg(3)) & AT_SYMLINK_NOFOLLOW) == 0;
  NodeId node = kNoNode;
  if (at && (arg(1) == "NULL" || arg(1) == "\"\"")) {
    if (const OpenFilePtr file = FileAt(0)) node = file->node;
  } else {
    node = NodeAt(at ? 1 : 0, at ? 0 : -1, follow, S_IFREG | 0644);
  }
  if (node == kNoNode) return;
  Event event = Make(Op::setattr_);
  uint32_t valid = 0;
  const auto set = [&](bool access, int64_t ns) {
    event.Set(access ? Field::kNewAtime : Field::kNewMtime,
              static_cast<uint64_t>(ns));
    valid |= access ? FATTR_ATIME : FATTR_MTIME;
  };
  constexpr auto kBillion = static_cast<int64_t>(kNsPerSecond);
  const auto seconds = [](std::string_view token) {
    return std::clamp<int64_t>(DecodeNumber(token).value_or(0), -kBillion * 9,
                               kBillion * 9);
  };
  const auto now = static_cast<int64_t>(begin_ns_);
  if (variant == 0 && times.starts_with('{')) {
    set(true, seconds(Member(times, "actime")) * kBillion);
    set(false, seconds(Member(times, "modtime")) * kBillion);
  } else if (times.starts_with('[')) {
    const std::vector<std::string_view> both = Elements(times);
    for (size_t i = 0; i < 2 && i < both.size(); ++i) {
      if (both[i].starts_with("UTIME_OMIT")) continue;
      if (both[i].starts_with("UTIME_NOW")) {
        set(i == 0, now);
        valid |= i == 0 ? FATTR_ATIME_NOW : FATTR_MTIME_NOW;
        continue;
      }
      const std::string_view fine = Member(both[i], "tv_nsec");
      const int64_t ns = fine.empty() ? seconds(Member(both[i], "tv_usec")) *
                                            static_cast<int64_t>(kNsPerUs)
                                      : seconds(fine);
      set(i == 0, seconds(Member(both[i], "tv_sec")) * kBillion + ns);
    }
  } else {
    set(true, now);
    set(false, now);
    valid |= FATTR_ATIME_NOW | FATTR_MTIME_NOW;
  }
  if (valid != 0) Setattr(node, valid, &event);
}

// variant: kPlain truncate, kFd ftruncate
void StracePass::DoTruncate(int variant) {
  if (!ok()) {
    if (!IsKernels()) LeaveOut("changes of attributes that were refused");
    return;
  }
  OpenFilePtr file;
  NodeId node = kNoNode;
  if (variant == kFd) {
    file = FileAt(0);
    if (file != nullptr) node = file->node;
  } else {
    node = NodeAt(0, -1, /*follow=*/true, S_IFREG | 0644);
  }
  if (node == kNoNode) return;
  Event event = Make(Op::setattr_);
  event.Set(Field::kNewSize, Unsigned(1));
  uint32_t valid = FATTR_SIZE;
  if (file != nullptr) {
    event.Set(Field::kFh, file->fh);
    valid |= FATTR_FH;
  }
  tree_.node(node).size = Unsigned(1);
  Changed(node);
  Setattr(node, valid, &event);
}

// variant: kPlain statfs, kFd fstatfs
void StracePass::DoStatfs(int variant) {
  if (!ok()) return;
  NodeId node = kNoNode;
  if (variant == kFd) {
    if (const OpenFilePtr file = FileAt(0)) node = file->node;
  } else {
    node = NodeAt(0, -1, /*follow=*/true, S_IFDIR | 0755);
  }
  if (node == kNoNode) return;
  Event event = Make(Op::statfs_);
  About(node, &event);
  Emit(&event);
}

// variant: 0 set, 1 get, 2 list, 3 remove; + 0 by path, 10 of links, 20 by
// descriptor
void StracePass::DoXattr(int variant) {
  if (!ok() && (IsKernels() || error_ == ENOENT)) return;
  const int what = variant % 10;
  const int how = variant / 10;
  NodeId node = kNoNode;
  if (how == 2) {
    if (const OpenFilePtr file = FileAt(0)) node = file->node;
  } else {
    const std::string path = PathOf(0, -1);
    const Spot spot = Reach(path, how == 0, S_IFREG | 0644);
    node = spot.node;
  }
  if (node == kNoNode) return;
  constexpr Op kOps[] = {Op::setxattr_, Op::getxattr_, Op::listxattr_,
                         Op::removexattr_};
  Event event = Make(kOps[what]);
  About(node, &event);
  std::string name;
  bool cut = false;
  if (what != 2) {
    if (!DecodeString(arg(1), &name, &cut) || cut) return;
    event.xattr_name = name;
  }
  const size_t size_at = what == 2 ? 2 : 3;
  if (what != 3) event.Set(Field::kLength, Unsigned(size_at));
  if (what == 0) {
    event.Set(Field::kFlags, DecodeFlags(arg(4)));
    if (TakeData(2, /*vector=*/false, Unsigned(3)) &&
        data_.size() == Unsigned(3)) {
      event.data = AsBytes(data_);
    }
  }
  Emit(&event);
}

const std::unordered_map<std::string_view, StracePass::Row>&
StracePass::Rows() {
  using P = StracePass;
  static const Row kRows[] = {
      {"open", &P::DoOpen, 0},
      {"openat", &P::DoOpen, 1},
      {"creat", &P::DoOpen, 2},
      {"openat2", &P::DoOpen, 3},
      {"close", &P::DoClose, 0},
      {"close_range", &P::DoClose, 1},
      {"dup", &P::DoDup, 0},
      {"dup2", &P::DoDup, 1},
      {"dup3", &P::DoDup, 2},
      {"fcntl", &P::DoFcntl, 0},
      {"fcntl64", &P::DoFcntl, 0},
      {"read", &P::DoTransfer, 0},
      {"pread64", &P::DoTransfer, 1},
      {"readv", &P::DoTransfer, 2},
      {"preadv", &P::DoTransfer, 3},
      {"preadv2", &P::DoTransfer, 3},
      {"write", &P::DoTransfer, 10},
      {"pwrite64", &P::DoTransfer, 11},
      {"writev", &P::DoTransfer, 12},
      {"pwritev", &P::DoTransfer, 13},
      {"pwritev2", &P::DoTransfer, 13},
      {"lseek", &P::DoSeek, 0},
      {"copy_file_range", &P::DoCopy, 0},
      {"sendfile", &P::DoCopy, 1},
      {"sendfile64", &P::DoCopy, 1},
      {"stat", &P::DoStat, 0},
      {"stat64", &P::DoStat, 0},
      {"newfstatat", &P::DoStat, 1},
      {"fstatat64", &P::DoStat, 1},
      {"fstat", &P::DoStat, 2},
      {"fstat64", &P::DoStat, 2},
      {"lstat", &P::DoStat, 3},
      {"lstat64", &P::DoStat, 3},
      {"statx", &P::DoStat, 4},
      {"access", &P::DoAccess, kPlain},
      {"faccessat", &P::DoAccess, kAt},
      {"faccessat2", &P::DoAccess, kAt},
      {"readlink", &P::DoReadlink, kPlain},
      {"readlinkat", &P::DoReadlink, kAt},
      {"mkdir", &P::DoMake, 0},
      {"mkdirat", &P::DoMake, 1},
      {"symlink", &P::DoMake, 2},
      {"symlinkat", &P::DoMake, 3},
      {"mknod", &P::DoMake, 4},
      {"mknodat", &P::DoMake, 5},
      {"unlink", &P::DoRemove, 0},
      {"unlinkat", &P::DoRemove, 1},
      {"rmdir", &P::DoRemove, 2},
      {"rename", &P::DoRename, 0},
      {"renameat", &P::DoRename, 1},
      {"renameat2", &P::DoRename, 2},
      {"link", &P::DoLink, kPlain},
      {"linkat", &P::DoLink, kAt},
      {"chmod", &P::DoMode, kPlain},
      {"fchmodat", &P::DoMode, kAt},
      {"fchmodat2", &P::DoMode, kAt},
      {"fchmod", &P::DoMode, kFd},
      {"chown", &P::DoOwner, kPlain},
      {"fchownat", &P::DoOwner, kAt},
      {"fchown", &P::DoOwner, kFd},
      {"lchown", &P::DoOwner, kLinkItself},
      {"utime", &P::DoTimes, 0},
      {"utimensat", &P::DoTimes, 1},
      {"utimes", &P::DoTimes, 2},
      {"futimesat", &P::DoTimes, 3},
      {"truncate", &P::DoTruncate, kPlain},
      {"truncate64", &P::DoTruncate, kPlain},
      {"ftruncate", &P::DoTruncate, kFd},
      {"ftruncate64", &P::DoTruncate, kFd},
      {"fallocate", &P::DoFallocate, 0},
      {"fsync", &P::DoSync, 0},
      {"fdatasync", &P::DoSync, 1},
      {"getdents64", &P::DoList, 0},
      {"getdents", &P::DoList, 0},
      {"statfs", &P::DoStatfs, kPlain},
      {"fstatfs", &P::DoStatfs, kFd},
      {"setxattr", &P::DoXattr, 0},
      {"lsetxattr", &P::DoXattr, 10},
      {"fsetxattr", &P::DoXattr, 20},
      {"getxattr", &P::DoXattr, 1},
      {"lgetxattr", &P::DoXattr, 11},
      {"fgetxattr", &P::DoXattr, 21},
      {"listxattr", &P::DoXattr, 2},
      {"llistxattr", &P::DoXattr, 12},
      {"flistxattr", &P::DoXattr, 22},
      {"removexattr", &P::DoXattr, 3},
      {"lremovexattr", &P::DoXattr, 13},
      {"fremovexattr", &P::DoXattr, 23},
      {"flock", &P::DoFlock, 0},
      {"mmap", &P::DoMap, 0},
      {"chdir", &P::DoFolder, kPlain},
      {"fchdir", &P::DoFolder, kFd},
      {"umask", &P::DoUmask, 0},
      {"clone", &P::DoClone, 0},
      {"clone3", &P::DoClone, 0},
      {"fork", &P::DoClone, 0},
      {"vfork", &P::DoClone, 0},
      {"execve", &P::DoExec, 0},
      {"execveat", &P::DoExec, 1},
  };
  // Nothing of these concerns the files of a tree.
  static constexpr std::string_view kNothing[] = {"brk",
                                                  "mprotect",
                                                  "munmap",
                                                  "mremap",
                                                  "madvise",
                                                  "msync",
                                                  "mlock",
                                                  "futex",
                                                  "futex_waitv",
                                                  "set_tid_address",
                                                  "set_robust_list",
                                                  "get_robust_list",
                                                  "rseq",
                                                  "arch_prctl",
                                                  "prctl",
                                                  "prlimit64",
                                                  "getrlimit",
                                                  "setrlimit",
                                                  "getrusage",
                                                  "getrandom",
                                                  "uname",
                                                  "sysinfo",
                                                  "getpid",
                                                  "getppid",
                                                  "gettid",
                                                  "getuid",
                                                  "geteuid",
                                                  "getgid",
                                                  "getegid",
                                                  "getpgrp",
                                                  "getpgid",
                                                  "getsid",
                                                  "getgroups",
                                                  "getresuid",
                                                  "getresgid",
                                                  "setpgid",
                                                  "setsid",
                                                  "setuid",
                                                  "setgid",
                                                  "setreuid",
                                                  "setregid",
                                                  "setresuid",
                                                  "setresgid",
                                                  "setgroups",
                                                  "setfsuid",
                                                  "setfsgid",
                                                  "capget",
                                                  "capset",
                                                  "rt_sigaction",
                                                  "rt_sigprocmask",
                                                  "rt_sigreturn",
                                                  "rt_sigsuspend",
                                                  "rt_sigtimedwait",
                                                  "rt_sigpending",
                                                  "sigaltstack",
                                                  "kill",
                                                  "tkill",
                                                  "tgkill",
                                                  "pause",
                                                  "alarm",
                                                  "setitimer",
                                                  "getitimer",
                                                  "nanosleep",
                                                  "clock_nanosleep",
                                                  "clock_gettime",
                                                  "clock_getres",
                                                  "gettimeofday",
                                                  "time",
                                                  "times",
                                                  "timer_create",
                                                  "timer_settime",
                                                  "timer_delete",
                                                  "timerfd_create",
                                                  "timerfd_settime",
                                                  "eventfd2",
                                                  "signalfd4",
                                                  "restart_syscall",
                                                  "sched_yield",
                                                  "sched_getaffinity",
                                                  "sched_setaffinity",
                                                  "sched_getparam",
                                                  "sched_getscheduler",
                                                  "sched_setscheduler",
                                                  "getpriority",
                                                  "setpriority",
                                                  "ioprio_set",
                                                  "wait4",
                                                  "waitid",
                                                  "exit",
                                                  "exit_group",
                                                  "pipe",
                                                  "pipe2",
                                                  "socket",
                                                  "socketpair",
                                                  "bind",
                                                  "listen",
                                                  "accept",
                                                  "accept4",
                                                  "connect",
                                                  "getsockname",
                                                  "getpeername",
                                                  "getsockopt",
                                                  "setsockopt",
                                                  "sendto",
                                                  "sendmsg",
                                                  "sendmmsg",
                                                  "recvfrom",
                                                  "recvmsg",
                                                  "recvmmsg",
                                                  "shutdown",
                                                  "poll",
                                                  "ppoll",
                                                  "select",
                                                  "pselect6",
                                                  "epoll_create1",
                                                  "epoll_ctl",
                                                  "epoll_wait",
                                                  "epoll_pwait",
                                                  "epoll_pwait2",
                                                  "fadvise64",
                                                  "readahead",
                                                  "shmget",
                                                  "shmat",
                                                  "shmctl",
                                                  "shmdt",
                                                  "semget",
                                                  "semop",
                                                  "semctl",
                                                  "semtimedop",
                                                  "memfd_create",
                                                  "membarrier",
                                                  "getcpu",
                                                  "mincore",
                                                  "get_mempolicy",
                                                  "personality",
                                                  "getcwd",
                                                  "kcmp",
                                                  "pidfd_open"};
  static const auto kMap = [] {
    std::unordered_map<std::string_view, Row> map;
    for (const Row& row : kRows) map.emplace(row.name, row);
    for (const std::string_view name : kNothing) {
      map.emplace(name, Row{name, &P::DoNothing, 0});
    }
    return map;
  }();
  return kMap;
}

}  // namespace tracefs::import
