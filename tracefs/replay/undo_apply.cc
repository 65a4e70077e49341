#include "tracefs/replay/undo_apply.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "tracefs/replay/acl.h"
#include "tracefs/replay/open_beneath.h"

namespace tracefs::replay {
namespace {

using Kind = UndoStep::Kind;

constexpr size_t kMostUndoneXattrBytes = 65536;

bool Move(int from, const std::string& name, int to, const std::string& other) {
  return ::renameat2(from, name.c_str(), to, other.c_str(), RENAME_NOREPLACE) ==
         0;
}

}  // namespace

bool UndoApplier::Proves(int fd, uint64_t file) const {
  struct stat now;
  const auto at = live_.find(file);
  if (at != live_.end() && ::fstatat(fd, "", &now, AT_EMPTY_PATH) == 0) {
    const struct stat& then = at->second;
    const bool same = now.st_dev == then.st_dev && now.st_ino == then.st_ino &&
                      now.st_mode == then.st_mode && now.st_uid == then.st_uid;
    // What is done in a directory, by whomever, changes its times.
    if (same &&
        (S_ISDIR(now.st_mode) || (now.st_ctim.tv_sec == then.st_ctim.tv_sec &&
                                  now.st_ctim.tv_nsec == then.st_ctim.tv_nsec &&
                                  now.st_size == then.st_size))) {
      return true;
    }
  }
  errno = ESTALE;
  return false;
}

void UndoApplier::LookAgain(int fd, uint64_t file) {
  struct stat now;
  if (::fstatat(fd, "", &now, AT_EMPTY_PATH) == 0) live_[file] = now;
}

UniqueFd UndoApplier::Parent(const std::string& path, uint64_t dir,
                             std::string* name) {
  UniqueFd fd = OpenParentBeneath(root_, path, name);
  if (fd && !Proves(fd.get(), dir)) fd.Reset();
  return fd;
}

UniqueFd UndoApplier::Reach(const std::string& path, uint64_t file) {
  std::string name;
  const UniqueFd dir = OpenParentBeneath(root_, path, &name);
  if (!dir) return {};
  UniqueFd fd(OpenBeneath(dir.get(), name, O_PATH | O_NOFOLLOW));
  if (fd && !Proves(fd.get(), file)) fd.Reset();
  return fd;
}

std::string UndoApplier::TakeOut(int dir, const std::string& name,
                                 uint64_t file, UniqueFd* fd) {
  // Before its times change.
  fd->Reset(OpenBeneath(dir, name, O_PATH | O_NOFOLLOW));
  if (!*fd || !Proves(fd->get(), file)) return {};
  const std::string taken = NewName();
  if (!Move(dir, name, room_, taken)) return {};
  const UniqueFd got(OpenBeneath(room_, taken, O_PATH | O_NOFOLLOW));
  struct stat of_got;
  const struct stat& then = live_[file];
  if (got && ::fstatat(got.get(), "", &of_got, AT_EMPTY_PATH) == 0 &&
      of_got.st_dev == then.st_dev && of_got.st_ino == then.st_ino) {
    LookAgain(fd->get(), file);
    return taken;
  }
  (void)Move(room_, taken, dir, name);  // the name was given to another
  errno = ESTALE;
  return {};
}

bool UndoApplier::PutDown(const std::string& from, int dir,
                          const std::string& name) {
  return Move(room_, from, dir, name);
}

bool UndoApplier::Remove(const UndoStep& step) {
  std::string name;
  UniqueFd dir = Parent(step.path, step.dir, &name);
  UniqueFd fd;
  if (!dir) return false;
  const std::string taken = TakeOut(dir.get(), name, step.file, &fd);
  if (taken.empty()) return false;
  const int at = dir.get();
  held_.push_back(std::move(dir));
  const auto put_back = [this, taken, at, name, object = fd.get(),
                         file = step.file] {
    const bool done = PutDown(taken, at, name);
    LookAgain(object, file);
    return done;
  };
  back_.push_back(put_back);
  gone_.push_back({taken, std::move(fd), step.file,
                   step.kind == Kind::kRemoveDir, put_back});
  return true;
}

bool UndoApplier::Rename(const UndoStep& step) {
  std::string name;
  std::string other;
  UniqueFd dir = Parent(step.path, step.dir, &name);
  UniqueFd other_dir = Parent(step.other, step.other_dir, &other);
  UniqueFd fd;
  if (!dir || !other_dir) return false;
  const std::string taken = TakeOut(dir.get(), name, step.file, &fd);
  if (taken.empty()) return false;
  if (!PutDown(taken, other_dir.get(), other)) {
    const int error = errno;
    (void)PutDown(taken, dir.get(), name);
    LookAgain(fd.get(), step.file);
    errno = error;
    return false;
  }
  LookAgain(fd.get(), step.file);
  const int from = dir.get();
  const int to = other_dir.get();
  held_.push_back(std::move(dir));
  held_.push_back(std::move(other_dir));
  back_.emplace_back([this, from, to, name, other, file = step.file] {
    UniqueFd object;
    const std::string back = TakeOut(to, other, file, &object);
    const bool done = !back.empty() && PutDown(back, from, name);
    if (object) LookAgain(object.get(), file);
    return done;
  });
  return true;
}

bool UndoApplier::Exchange(const UndoStep& step) {
  std::string name;
  std::string other;
  UniqueFd dir = Parent(step.path, step.dir, &name);
  UniqueFd other_dir = Parent(step.other, step.other_dir, &other);
  if (!dir || !other_dir) return false;
  UniqueFd first;
  UniqueFd second;
  const std::string one = TakeOut(dir.get(), name, step.file, &first);
  if (one.empty()) return false;
  const std::string two =
      TakeOut(other_dir.get(), other, step.other_file, &second);
  const bool done = !two.empty() && PutDown(one, other_dir.get(), other) &&
                    PutDown(two, dir.get(), name);
  const int error = errno;
  if (!done) {
    // Whatever of it is in the room; the one that was put down first is taken
    // out again.
    UniqueFd again;
    (void)Move(other_dir.get(), other, room_, one);
    (void)PutDown(one, dir.get(), name);
    if (!two.empty()) (void)PutDown(two, other_dir.get(), other);
  }
  LookAgain(first.get(), step.file);
  if (second) LookAgain(second.get(), step.other_file);
  errno = error;
  if (!done) return false;
  back_.emplace_back([this, step] {
    // The same once more, the other way round.
    UndoStep back = step;
    std::swap(back.file, back.other_file);
    return Exchange(back);
  });
  return true;
}

bool UndoApplier::Make(const UndoStep& step) {
  std::string name;
  UniqueFd dir = Parent(step.path, step.dir, &name);
  if (!dir) return false;
  const std::string made = NewName();
  if (!MakeWhole(store_, room_, made, owners_, step)) return false;
  UniqueFd fd(OpenBeneath(room_, made, O_PATH | O_NOFOLLOW));
  if (!fd || !PutDown(made, dir.get(), name)) {
    const int error = errno;
    const bool folder = step.kind == Kind::kMakeDir;
    ::unlinkat(room_, made.c_str(), folder ? AT_REMOVEDIR : 0);
    errno = error;
    return false;
  }
  LookAgain(fd.get(), step.file);
  const int at = dir.get();
  held_.push_back(std::move(dir));
  back_.emplace_back(
      [this, at, name, file = step.file, folder = step.kind == Kind::kMakeDir] {
        UniqueFd object;
        const std::string taken = TakeOut(at, name, file, &object);
        return !taken.empty() &&
               ::unlinkat(room_, taken.c_str(), folder ? AT_REMOVEDIR : 0) == 0;
      });
  return true;
}

bool UndoApplier::LinkAgain(const UndoStep& step) {
  std::string name;
  UniqueFd dir = Parent(step.path, step.dir, &name);
  const UniqueFd fd = Reach(step.other, step.file);
  if (!dir || !fd) return false;
  if (::linkat(AT_FDCWD, FdPath(fd.get()).c_str(), dir.get(), name.c_str(),
               AT_SYMLINK_FOLLOW) != 0) {
    return false;
  }
  LookAgain(fd.get(), step.file);
  const int at = dir.get();
  held_.push_back(std::move(dir));
  back_.emplace_back([this, at, name, file = step.file] {
    UniqueFd object;
    const std::string taken = TakeOut(at, name, file, &object);
    const bool done =
        !taken.empty() && ::unlinkat(room_, taken.c_str(), 0) == 0;
    if (object) LookAgain(object.get(), file);
    return done;
  });
  return true;
}

bool UndoApplier::ChangeContents(const UndoStep& step, int fd) {
  UniqueFd file(OpenAsOwner(fd, O_RDWR | O_NONBLOCK));
  UndoStep before;
  if (!file || !KeepContents(file.get(), step, store_, &before)) return false;
  const int to = file.get();
  held_.push_back(std::move(file));
  back_.emplace_back([this, to, number = step.file, before] {
    const bool done = PutContents(store_, before, to);
    LookAgain(to, number);
    return done;
  });
  return PutContents(store_, step, to);
}

bool UndoApplier::ChangeXattr(const UndoStep& step, int fd) {
  const std::string path = FdPath(fd);
  std::string was(kMostUndoneXattrBytes, '\0');
  const ssize_t n =
      ::getxattr(path.c_str(), step.other.c_str(), was.data(), was.size());
  if (n < 0 && errno != ENODATA) return false;
  if (n >= 0) was.resize(static_cast<size_t>(n));
  const auto put = [this, fd, path, name = step.other, file = step.file](
                       bool there, const std::string& value) {
    const bool done = AsOwner(fd, [&] {
                        return there
                                   ? ::setxattr(path.c_str(), name.c_str(),
                                                value.data(), value.size(), 0)
                                   : ::removexattr(path.c_str(), name.c_str());
                      }) == 0;
    LookAgain(fd, file);
    return done;
  };
  if (!put(step.kind == Kind::kXattr, step.value)) return false;
  back_.emplace_back([put, n, was] { return put(n >= 0, was); });
  return true;
}

bool UndoApplier::Change(const UndoStep& step) {
  UniqueFd object = Reach(step.path, step.file);
  if (!object) return false;
  const int fd = object.get();
  held_.push_back(std::move(object));
  const struct stat was = live_[step.file];
  const auto change_mode = [this, fd, was, file = step.file] {
    const bool done =
        S_ISLNK(was.st_mode) || ChmodFd(fd, was.st_mode & 07777) == 0;
    LookAgain(fd, file);
    return done;
  };
  bool done = false;
  switch (step.kind) {
    case Kind::kContents:
      done = ChangeContents(step, fd);
      break;
    case Kind::kMode:
      back_.emplace_back(change_mode);
      done = ChmodFd(fd, step.mode) == 0;
      break;
    case Kind::kOwner:
      // It ends set-id bits.
      back_.emplace_back(change_mode);
      back_.emplace_back([this, fd, was] {
        return !owners_ ||
               ::fchownat(fd, "", was.st_uid, was.st_gid, AT_EMPTY_PATH) == 0;
      });
      done =
          owners_ && ::fchownat(fd, "", step.uid, step.gid, AT_EMPTY_PATH) == 0;
      break;
    default:
      // Without the ACL its mask stays in the mode.
      if (step.other == kAccessAcl) back_.emplace_back(change_mode);
      done = ChangeXattr(step, fd);
  }
  const int error = errno;
  LookAgain(fd, step.file);
  errno = error;
  return done;
}

bool UndoApplier::DoStep(const UndoStep& step) {
  switch (step.kind) {
    case Kind::kRemove:
    case Kind::kRemoveDir:
      return Remove(step);
    case Kind::kRename:
      return Rename(step);
    case Kind::kExchange:
      return Exchange(step);
    case Kind::kLinkAgain:
      return LinkAgain(step);
    case Kind::kMakeFile:
    case Kind::kMakeDir:
    case Kind::kMakeLink:
    case Kind::kMakeNode:
      return Make(step);
    default:
      return Change(step);
  }
}

// Removals come last: they cannot be reversed. Directories first, which others
// may have open and fill: until something is removed, everything can be
// reversed.
Status UndoApplier::Commit() {
  std::stable_partition(gone_.begin(), gone_.end(),
                        [](const Gone& gone) { return gone.folder; });
  bool begun = false;
  for (Gone& gone : gone_) {
    if (::unlinkat(room_, gone.name.c_str(), gone.folder ? AT_REMOVEDIR : 0) !=
        0) {
      const Status failed = Status::System(errno, "remove");
      if (!begun) return PutBack(failed);
      (void)gone.put_back();
      return Status::Corrupt(failed.message() +
                             "; the rest of the operation is taken back");
    }
    begun = true;
    LookAgain(gone.fd.get(), gone.file);
  }
  return {};
}

// Takes back what was done of the group that `failed`.
Status UndoApplier::PutBack(const Status& failed) {
  bool done = true;
  for (auto back = back_.rbegin(); back != back_.rend(); ++back) {
    // Those that it adds take back what is taken back: they are not wanted.
    const std::function<bool()> take_back = *back;
    done &= take_back();
  }
  if (done) return failed;
  return Status::Corrupt(failed.message() +
                         "; what was done before it could not be put back");
}

Status UndoApplier::Do(const UndoGroup& group) {
  back_.clear();
  gone_.clear();
  held_.clear();
  back_.reserve(2 * group.steps.size() + 8);
  for (const UndoStep& step : group.steps) {
    if (step.is_nothing || DoStep(step)) continue;
    const int error = errno;
    return PutBack(
        error == ESTALE
            ? Status::Invalid(step.Text() +
                              ": others are changing it at this moment")
            : Status::System(error, step.Text()));
  }
  return Commit();
}

}  // namespace tracefs::replay
