// unlink, rmdir, rename: with the rights of the caller, so that the directory
// below decides on the file that bears the name by then (callers_rights.h).
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <thread>
#include <utility>

#include "tracefs/fs/callers_rights.h"
#include "tracefs/fs/op_scope.h"
#include "tracefs/fs/operations.h"

namespace tracefs {
namespace {

// The file behind an operand of a traced operation. Its inode number cannot be
// had once the name is gone.
void RecordVictim(OpScope& op, Inode& dir, const char* name) {
  struct stat st;
  if (!op.traced() ||
      ::fstatat(op.fs().FdOf(dir).get(), name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
    return;
  }
  op.Attributes(st);
}

// An inode of ours by what `name` means now, with one lookup counted; null if
// the kernel does not know it. For bookkeeping of names only.
Inode* Known(FileSystem& fs, Inode& dir, const char* name) {
  struct stat st;
  if (::fstatat(fs.FdOf(dir).get(), name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
    return nullptr;
  }
  return fs.inodes().Acquire(st.st_dev, st.st_ino);
}

// Many files are unlinked faster than the kernel forgets them, and each of them
// holds a descriptor: gives it the time to do so, within bounds. Not where
// nothing is forgotten: then they are open.
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
// vanishing under those who still use it.
Inode* Victim(FileSystem& fs, Inode& dir, const char* name) {
  if (!fs.inodes().has_hard_links() && !fs.inodes().has_unpinned()) {
    return nullptr;
  }
  Inode* const victim = Known(fs, dir, name);
  if (victim != nullptr) {
    AwaitForgets(fs);
    fs.inodes().Pin(*victim);
  }
  return victim;
}

void Remove(OpScope& op, Inode& dir, const char* name, int flags) {
  FileSystem& fs = op.fs();
  op.In(dir, name);
  RecordVictim(op, dir, name);
  op.Begin();
  Inode* const victim = Victim(fs, dir, name);
  const BackingFd dir_fd = fs.FdOf(dir);
  const std::array touched = {TouchedName{dir_fd.get(), name}};
  const int error = WithCallersRights(
      op, touched, [&] { return ::unlinkat(dir_fd.get(), name, flags); });
  if (victim != nullptr) {
    if (error == 0) fs.inodes().Unnamed(victim, &dir, name);
    fs.inodes().Release(victim, 1);
  }
  op.ReplyError(error);
}

// After a successful rename: what is found under `name` has that name, and no
// longer `old_name` in `old_dir`.
void NoteRenamed(FileSystem& fs, Inode& dir, const char* name, Inode& old_dir,
                 const char* old_name) {
  Inode* inode = Known(fs, dir, name);
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
  RecordVictim(op, dir, name);
  op.Begin();
  // A file that is replaced loses a name, too.
  Inode* const replaced = flags == 0 ? Victim(fs, new_dir, new_name) : nullptr;
  const BackingFd dir_fd = fs.FdOf(dir);
  const BackingFd new_dir_fd = fs.FdOf(new_dir);
  const std::array touched = {TouchedName{dir_fd.get(), name},
                              TouchedName{new_dir_fd.get(), new_name}};
  const int error = WithCallersRights(op, touched, [&] {
    return flags == 0
               ? ::renameat(dir_fd.get(), name, new_dir_fd.get(), new_name)
               : ::renameat2(dir_fd.get(), name, new_dir_fd.get(), new_name,
                             flags);
  });
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
