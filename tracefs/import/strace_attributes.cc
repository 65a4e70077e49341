// StracePass: calls that change attributes, and all on extended ones.
#include <fcntl.h>
#include <linux/fuse.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "tracefs/base/clock.h"
#include "tracefs/import/strace_pass.h"

namespace tracefs::import {

void StracePass::Setattr(NodeId node, uint32_t valid, Event* event) {
  About(node, event);
  event->Set(Field::kValid, valid);
  Emit(event);
}

void StracePass::DoMode(uint32_t variant) {
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

void StracePass::DoOwner(uint32_t variant) {
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

// kStruct: utime, which has seconds in a struct.
void StracePass::DoTimes(uint32_t variant) {
  if (!ok()) {
    if (!IsKernels()) LeaveOut("changes of attributes that were refused");
    return;
  }
  const bool at = (variant & kAt) != 0;
  const std::string_view times = arg(at ? 2 : 1);
  const bool follow = (variant & kFlags) == 0 ||
                      (DecodeFlags(arg(3)) & AT_SYMLINK_NOFOLLOW) == 0;
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
  if (variant == kStruct && times.starts_with('{')) {
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

void StracePass::DoTruncate(uint32_t variant) {
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

// kGet, kList, kRemove, or none of them: sets.
void StracePass::DoXattr(uint32_t variant) {
  if (!ok() && (IsKernels() || error_ == ENOENT)) return;
  NodeId node = kNoNode;
  if ((variant & kFd) != 0) {
    if (const OpenFilePtr file = FileAt(0)) node = file->node;
  } else {
    const std::string path = PathOf(0, -1);
    const Spot spot = Reach(path, (variant & kLinkItself) == 0, S_IFREG | 0644);
    node = spot.node;
  }
  if (node == kNoNode) return;
  const Op op = (variant & kGet) != 0      ? Op::getxattr_
                : (variant & kList) != 0   ? Op::listxattr_
                : (variant & kRemove) != 0 ? Op::removexattr_
                                           : Op::setxattr_;
  Event event = Make(op);
  About(node, &event);
  std::string name;
  bool cut = false;
  if (op != Op::listxattr_) {
    if (!DecodeString(arg(1), &name, &cut) || cut) return;
    event.xattr_name = name;
  }
  const size_t size_at = op == Op::listxattr_ ? 2 : 3;
  if (op != Op::removexattr_) event.Set(Field::kLength, Unsigned(size_at));
  if (op == Op::setxattr_) {
    event.Set(Field::kFlags, DecodeFlags(arg(4)));
    if (TakeData(2, /*vector=*/false, Unsigned(3)) &&
        data_.size() == Unsigned(3)) {
      event.data = AsBytes(data_);
    }
  }
  Emit(&event);
}

}  // namespace tracefs::import
