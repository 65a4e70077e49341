// Look-ups of what the kernel has a handle of and no inode any more: LOOKUP of
// "." in the file itself, and of ".." in a directory (linux/fs/fuse/inode.c,
// fuse_get_dentry and fuse_get_parent).
#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "tracefs/base/text.h"
#include "tracefs/fs/lookup.h"

namespace tracefs {

bool LookedUpAgain(fuse_req_t req, fuse_ino_t id, const char* name) {
  const bool parent = std::strcmp(name, "..") == 0;
  if (!FileSystem::Of(req).looks_up_by_id() ||
      (!parent && std::strcmp(name, ".") != 0)) {
    return false;
  }
  OpScope op(req, Op::lookup_);
  FileSystem& fs = op.fs();
  op.Begin();
  struct stat st;
  Inode* const inode =
      parent ? fs.LookupParent(fs.InodeOf(id), &st) : fs.LookupById(id, &st);
  if (inode == nullptr) {
    op.ReplyError(errno);
  } else {
    ReplyEntry(op, *inode, st);
  }
  return true;
}

// The inode of that file, of which no name is known, with a lookup counted.
Inode* FileSystem::EnterUnnamed(UniqueFd fd, const struct stat& st) {
  if (Inode* const known = AcquireSame(fd.get(), "", st)) return known;
  return inodes_.AcquireOrInsert(inodes_.Hold(std::move(fd), /*named=*/false),
                                 st);
}

Inode* FileSystem::LookupById(uint64_t id, struct stat* st) {
  UniqueFd fd = inodes_.OpenById(id);
  if (!fd && (errno == EMFILE || errno == ENFILE || errno == ENOMEM)) {
    return nullptr;
  }
  std::string where;
  if (!fd || ::fstatat(fd.get(), "", st, AT_EMPTY_PATH) != 0 ||
      st->st_nlink == 0 || !lasting_ids_->IsInside(fd.get(), id, *st, &where)) {
    errno = ESTALE;
    return nullptr;
  }
  Inode* const inode = EnterUnnamed(std::move(fd), *st);
  // It has another id as long as the kernel uses another file of this one.
  if (inode->id() != id) {
    inodes_.Release(inode, 1);
    errno = ESTALE;
    return nullptr;
  }
  NodeLink link;
  if (id != 1 && !inodes_.LinkOf(id, &link)) NameAsBelow(where);
  return inode;
}

// Enters the names that lead to a file, so that its path is known.
void FileSystem::NameAsBelow(const std::string& where) {
  Inode* at = inodes_.Find(1);
  std::string_view left = where;
  while (!left.empty()) {
    struct stat st;
    Inode* const next =
        Lookup(*at, std::string(TakeUpTo(left, '/')).c_str(), &st);
    if (at->id() != 1) inodes_.Release(at, 1);
    if (next == nullptr) return;
    at = next;
  }
  if (at->id() != 1) inodes_.Release(at, 1);
}

Inode* FileSystem::LookupParent(Inode& dir, struct stat* st) {
  const BackingFd fd = FdOf(dir);
  UniqueFd parent(::openat(fd.get(), "..", O_PATH | O_DIRECTORY | O_CLOEXEC));
  std::string where;
  if (dir.id() == 1 || !parent ||
      ::fstatat(parent.get(), "", st, AT_EMPTY_PATH) != 0 ||
      !lasting_ids_->IsInside(parent.get(), 0, *st, &where)) {
    errno = ESTALE;
    return nullptr;
  }
  return EnterUnnamed(std::move(parent), *st);
}

}  // namespace tracefs
