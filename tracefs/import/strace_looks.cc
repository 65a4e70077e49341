// StracePass: calls that look at files: attributes, rights, link targets.
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <string>

#include "tracefs/import/strace_pass.h"

namespace tracefs::import {

// kStruct: statx.
void StracePass::DoStat(uint32_t variant) {
  const bool at = (variant & kAt) != 0;
  const bool statx = (variant & kStruct) != 0;
  const size_t flags_at = statx ? 2 : 3;
  const uint64_t flags = at ? DecodeFlags(arg(flags_at)) : 0;
  const bool follow =
      variant != kLinkItself && (flags & AT_SYMLINK_NOFOLLOW) == 0;
  const std::string_view stat = arg(statx ? 4 : at ? 2 : 1);
  const bool by_descriptor =
      variant == kFd || (at && (arg(1) == "\"\"" || arg(1) == "NULL"));
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

void StracePass::DoAccess(uint32_t variant) {
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

void StracePass::DoReadlink(uint32_t variant) {
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

void StracePass::DoStatfs(uint32_t variant) {
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

}  // namespace tracefs::import
