// unlink, rmdir, rename: with the rights of the caller, so that the directory
// below decides about the file that has the name by then (callers_rights.h).
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <thread>
#include <utility>

#include "tracefs/fs/callers_rights.h"
#include "tracefs/fs/keep_before.h"
#include "tracefs/fs/op_scope.h"
#include "tracefs/fs/operations.h"

namespace tracefs {
namespace {

// What a name means now; asked for once, and only if it matters.
class Named {
 public:
  Named(FileSystem& fs, Inode& dir, const char* name)
      : fs_(fs), dir_(dir), name_(name) {}

  // The file's attributes; null if there is none.
  const struct stat* Attributes() {
    if (!asked_) {
      asked_ = true;
      found_ = ::fstatat(fs_.FdOf(dir_).get(), name_, &st_,
                         AT_SYMLINK_NOFOLLOW) == 0;
    }
    return found_ ? &st_ : nullptr;
  }
  uint64_t Number() {
    const struct stat* st = Attributes();
    return st == nullptr ? 0 : st->st_ino;
  }
  // Everything so far was decided before others could be excluded.
  void AskAgain() { asked_ = false; }
  // Our inode of that file, with one lookup counted; null if the kernel does
  // not know it. For bookkeeping of names only.
  Inode* Known() {
    const struct stat* st = Attributes();
    return st == nullptr ? nullptr
                         : fs_.inodes().Acquire(st->st_dev, st->st_ino);
  }

 private:
  FileSystem& fs_;
  Inode& dir_;
  const char* const name_;
  bool asked_ = false;
  bool found_ = false;
  struct stat st_;
};

// The file that had the name when a daemon before this one was about to take it
// away for this request; 0: not known.
uint64_t NumberBefore() {
  return survive::MayBeMade() && survive::NotedBefore() > 1
             ? survive::NotedBefore() - 1
             : 0;
}

// That file, which the kernel knows still. `names`: how many more it had.
void RecordTaken(OpScope& op, const Inode& dir, uint64_t number,
                 nlink_t names) {
  FileSystem& fs = op.fs();
  op.Set(Field::kInode, number);
  Inode* const file = fs.inodes().Acquire(dir.device(), number);
  if (file == nullptr) return;
  struct stat st;
  if (::fstatat(fs.FdOf(*file).get(), "", &st, AT_EMPTY_PATH) == 0) {
    st.st_nlink += names;
    if (!S_ISDIR(st.st_mode) || names == 0) {
      op.Attributes(st);
    } else {
      // One that was removed may have no size any more.
      op.Set(Field::kType, S_IFDIR >> 12);
      op.Set(Field::kMode, st.st_mode);
      op.Set(Field::kNlink, st.st_nlink);
      op.Set(Field::kFuid, st.st_uid);
      op.Set(Field::kFgid, st.st_gid);
    }
  }
  fs.inodes().Release(file, 1);
}

// The file behind an operand of a traced operation. Its inode number cannot be
// had once the name is gone. `names`: that the operation takes from it.
void RecordVictim(OpScope& op, const Inode& dir, Named& name, nlink_t names) {
  if (!op.traced()) return;
  const uint64_t before = NumberBefore();
  if (before != 0 && before != name.Number()) {
    return RecordTaken(op, dir, before, names);
  }
  if (const struct stat* st = name.Attributes()) op.Attributes(*st);
}

// Their names change, and with them the known state of the files, which must be
// from a moment without other changes. The names do not change meanwhile.
void HoldFiles(OpScope& op, Named& name, Named* other) {
  if (!op.Orders()) return;
  const uint64_t number = name.Number();
  if (const uint64_t replaced = other == nullptr ? 0 : other->Number();
      replaced != 0) {
    op.ChangesFiles(number != 0 ? number : replaced, replaced);
  } else if (number != 0) {
    op.ChangesFile(number);
  }
  name.AskAgain();
}

// Many files are unlinked faster than the kernel forgets them, and each of them
// holds a descriptor: gives it time to do so, within bounds. Not if nothing is
// forgotten: then they are open.
void AwaitForgets(const FileSystem& fs) {
  constexpr int kMostTries = 100;
  constexpr int kMostInVain = 5;
  int left = fs.inodes().fds_left();
  int in_vain = 0;
  for (int i = 0; i < kMostTries && !fs.inodes().MayPin(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const int before = std::exchange(left, fs.inodes().fds_left());
    if (left > before) {
      in_vain = 0;
    } else if (++in_vain == kMostInVain) {
      return;
    }
  }
}

// The inode that is about to lose the name, with one lookup counted, if that
// has to be known: it has other names, or nothing else keeps its file from
// vanishing while in use.
Inode* Victim(FileSystem& fs, Named& name) {
  if (!fs.inodes().has_hard_links() && !fs.inodes().has_unpinned()) {
    return nullptr;
  }
  Inode* const victim = name.Known();
  if (victim != nullptr) {
    AwaitForgets(fs);
    fs.inodes().Pin(*victim);
  }
  return victim;
}

void Remove(OpScope& op, Inode& dir, const char* name, int flags) {
  FileSystem& fs = op.fs();
  op.In(dir, name);
  op.ChangesNames(dir);
  Named file(fs, dir, name);
  HoldFiles(op, file, nullptr);
  RecordVictim(op, dir, file, flags == 0 ? 1 : 2);
  op.Begin();
  Inode* const victim = Victim(fs, file);
  const BackingFd dir_fd = fs.FdOf(dir);
  const std::array touched = {TouchedName{dir_fd.get(), name}};
  KeepBefore keep(op);
  int error = flags == 0 ? keep.Name(dir_fd.get(), name) : 0;
  if (error == 0) {
    error = op.Once(
        survive::Change::kTakes, [&] { return file.Number(); },
        [&] {
          return WithCallersRights(op, touched, [&] {
            return ::unlinkat(dir_fd.get(), name, flags);
          });
        });
  }
  keep.Settle(error == 0);
  if (error == 0) dir.NoteNameGone();
  if (victim != nullptr) {
    if (error == 0) fs.inodes().Unnamed(victim, &dir, name);
    fs.inodes().Release(victim, 1);
  }
  op.ReplyError(error);
}

// After a successful rename: the file found under `name` has that name, and no
// longer `old_name` in `old_dir`.
void NoteRenamed(FileSystem& fs, Inode& dir, const char* name, Inode& old_dir,
                 const char* old_name) {
  Inode* inode = Named(fs, dir, name).Known();
  if (inode == nullptr) return;
  fs.inodes().Renamed(inode, &old_dir, old_name, &dir, name);
  if (inode->is_dir()) fs.inodes().DirectoryRenamed();
  fs.inodes().Release(inode, 1);
}

}  // namespace

void FsUnlink(fuse_req_t req, fuse_ino_t parent, const char* name) {
  OpScope op(req, Op::unlink_);
  Remove(op, op.fs().InodeOf(parent), name, 0);
}

void FsRmdir(fuse_req_t req, fuse_ino_t parent, const char* name) {
  OpScope op(req, Op::rmdir_);
  Remove(op, op.fs().InodeOf(parent), name, AT_REMOVEDIR);
}

void FsRename(fuse_req_t req, fuse_ino_t parent, const char* name,
              fuse_ino_t new_parent, const char* new_name, unsigned flags) {
  OpScope op(req, Op::rename_);
  FileSystem& fs = op.fs();
  Inode& dir = fs.InodeOf(parent);
  Inode& new_dir = fs.InodeOf(new_parent);
  op.In(dir, name);
  op.Into(new_dir, new_name);
  op.Set(Field::kFlags, flags);
  op.ChangesNames(dir, new_dir);
  Named moved(fs, dir, name);
  // The file with the other name is replaced, or also changes its name.
  Named other(fs, new_dir, new_name);
  HoldFiles(op, moved, &other);
  RecordVictim(op, dir, moved, 0);
  op.Begin();
  Inode* const replaced = flags == 0 ? Victim(fs, other) : nullptr;
  const BackingFd dir_fd = fs.FdOf(dir);
  const BackingFd new_dir_fd = fs.FdOf(new_dir);
  const std::array touched = {TouchedName{dir_fd.get(), name},
                              TouchedName{new_dir_fd.get(), new_name}};
  const auto change = [&] {
    return flags == 0
               ? ::renameat(dir_fd.get(), name, new_dir_fd.get(), new_name)
               : ::renameat2(dir_fd.get(), name, new_dir_fd.get(), new_name,
                             flags);
  };
  KeepBefore keep(op);
  int error = 0;
  if (keep && (flags & (RENAME_NOREPLACE | RENAME_EXCHANGE)) == 0) {
    error = keep.Name(new_dir_fd.get(), new_name, moved.Number());
  }
  if (error == 0) {
    // The old name may lead to a file still: to the other one, or a whiteout.
    error = op.Once(
        survive::Change::kTakes, [&] { return moved.Number(); },
        [&] { return WithCallersRights(op, touched, change); });
  }
  keep.Settle(error == 0);
  if (error == 0) {
    dir.NoteNameGone();
    new_dir.NoteNameGone();
  }
  if (replaced != nullptr) {
    if (error == 0) fs.inodes().Unnamed(replaced, &new_dir, new_name);
    fs.inodes().Release(replaced, 1);
  }
  if (error == 0) {
    NoteRenamed(fs, new_dir, new_name, dir, name);
    if ((flags & RENAME_EXCHANGE) != 0) {
      NoteRenamed(fs, dir, name, new_dir, new_name);
    }
  }
  op.ReplyError(error);
}

}  // namespace tracefs
