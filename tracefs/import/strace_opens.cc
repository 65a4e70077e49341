// StracePass: opens.
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <string>

#include "tracefs/import/strace_pass.h"

namespace tracefs::import {
namespace {

// Flags of no use once the file is made.
constexpr uint32_t kOpenOnly = O_CREAT | O_EXCL | O_NOCTTY;

}  // namespace

// kOther: creat, which has no flags.
void StracePass::DoOpen(uint32_t variant) {
  const bool at = (variant & kAt) != 0;
  const size_t path_at = at ? 1 : 0;
  const size_t flags_at = path_at + 1;
  std::string path = PathOf(path_at, at ? 0 : -1);
  uint32_t flags = O_CREAT | O_WRONLY | O_TRUNC;
  auto mode = static_cast<uint32_t>(Unsigned(path_at + 2));
  if (variant == kOther) {
    mode = static_cast<uint32_t>(Unsigned(1));
  } else if ((variant & kStruct) != 0) {
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

}  // namespace tracefs::import
