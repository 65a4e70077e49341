// opendir, readdir, readdirplus, releasedir, fsyncdir.
//
// Directories are read with getdents64 into a buffer of the handle; the
// offsets we pass on are the backing file system's own, so that telldir and
// seekdir mean what they mean below.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <vector>

#include "tracefs/fs/file_share.h"
#include "tracefs/fs/io_buffer.h"
#include "tracefs/fs/op_scope.h"
#include "tracefs/fs/operations.h"

namespace tracefs {
namespace {

// linux_dirent64 of getdents64(2).
struct Entry {
  ino64_t d_ino;
  off64_t d_off;
  unsigned short d_reclen;
  unsigned char d_type;
  char d_name[1];  // and more, up to a NUL
};

DirHandle& DirOf(const fuse_file_info* fi) {
  return static_cast<DirHandle&>(HandleOf(fi));
}

// Makes the entry at `offset` the next one of the batch; null at the end, or
// with *error set.
const Entry* Next(DirHandle& dir, int fd, off_t offset, int* error) {
  // Offset 0 reads again where something was read: rewinddir shows what was
  // added since. A stream that was never read may begin anywhere: its caller
  // has sought there, or the kernel has dropped the listing that it had kept.
  if (offset != dir.position || (offset == 0 && dir.read_before)) {
    if (::lseek(fd, offset, SEEK_SET) < 0) {
      *error = errno;
      return nullptr;
    }
    dir.batch_size = dir.batch_at = 0;
    dir.position = offset;
  }
  if (dir.batch_at == dir.batch_size) {
    if (!dir.batch) {
      dir.batch =
          std::make_unique_for_overwrite<char[]>(DirHandle::kBatchBytes);
    }
    dir.read_before = true;
    const long n =
        ::syscall(SYS_getdents64, fd, dir.batch.get(), DirHandle::kBatchBytes);
    dir.batch_size = dir.batch_at = 0;
    if (n < 0) *error = errno;
    if (n <= 0) return nullptr;
    dir.batch_size = static_cast<size_t>(n);
  }
  return reinterpret_cast<const Entry*>(dir.batch.get() + dir.batch_at);
}

void Advance(DirHandle& dir, const Entry& entry) {
  dir.batch_at += entry.d_reclen;
  dir.position = entry.d_off;
}

bool IsDots(const char* name) {
  return name[0] == '.' &&
         (name[1] == '\0' || (name[1] == '.' && name[2] == '\0'));
}

// What readdirplus says about an entry; node id 0 where the kernel must learn
// nothing (so that its look-up is seen). What it learns is added to `told`.
fuse_entry_param Describe(FileSystem& fs, Inode& dir, const Entry& entry,
                          bool look_up, std::vector<Inode*>* told) {
  fuse_entry_param param{};
  param.attr.st_ino = entry.d_ino;
  param.attr.st_mode = static_cast<mode_t>(entry.d_type) << 12;
  if (!look_up || IsDots(entry.d_name)) return param;
  struct stat st;
  Inode* inode = fs.Lookup(dir, entry.d_name, &st);
  if (inode == nullptr) return param;  // gone, or no descriptor is left
  told->push_back(inode);
  return fs.EntryParam(*inode, st);
}

void Read(fuse_req_t req, size_t size, off_t offset, fuse_file_info* fi,
          bool plus) {
  OpScope op(req, Op::readdir_);
  FileSystem& fs = op.fs();
  DirHandle& dir = DirOf(fi);
  op.About(dir.inode);
  op.Through(dir);
  op.Set(Field::kOffset, static_cast<uint64_t>(offset));
  op.Set(Field::kLength, size);
  op.Begin();
  op.LooksAtNames(dir.inode);
  char* const buffer = IoBuffer(size);
  if (buffer == nullptr) return op.ReplyError(ENOMEM);
  const int fd = dir.Fd(fs);
  const bool look_up = plus && fs.policy().MayLookUpAhead();
  std::vector<Inode*> told;
  size_t used = 0;
  int error = 0;
  {
    std::lock_guard lock(dir.mu);
    off_t at = offset;
    while (const Entry* entry = Next(dir, fd, at, &error)) {
      const size_t room = size - used;
      size_t needed;
      if (plus) {
        // Asked with no room first: entries that do not fit must not be looked
        // up.
        fuse_entry_param param{};
        needed = fuse_add_direntry_plus(req, nullptr, 0, entry->d_name, &param,
                                        entry->d_off);
        if (needed > room) break;
        param = Describe(fs, dir.inode, *entry, look_up, &told);
        fuse_add_direntry_plus(req, buffer + used, room, entry->d_name, &param,
                               entry->d_off);
      } else {
        struct stat st {};
        st.st_ino = entry->d_ino;
        st.st_mode = static_cast<mode_t>(entry->d_type) << 12;
        needed = fuse_add_direntry(req, buffer + used, room, entry->d_name, &st,
                                   entry->d_off);
        if (needed > room) break;
      }
      used += needed;
      at = entry->d_off;
      Advance(dir, *entry);
      if (at == 0) break;  // a file system that cannot say where it is
    }
  }
  // Entries read before an error count; the error comes again.
  if (error != 0 && used == 0) return op.ReplyError(error);
  if (op.End(static_cast<int64_t>(used), 0,
             [&] { return fuse_reply_buf(req, buffer, used); }) != 0) {
    // The kernel did not take it: nobody will forget them.
    for (Inode* inode : told) fs.inodes().Release(inode, 1);
  }
}

}  // namespace

void FsOpendir(fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi) {
  OpScope op(req, Op::opendir_);
  FileSystem& fs = op.fs();
  Inode& inode = fs.InodeOf(ino);
  op.About(inode);
  op.Set(Field::kFlags, static_cast<uint32_t>(fi->flags));
  op.Begin();
  const uint32_t uid = ContextOf(req)->uid;
  FileShare share(fs.open_files(), uid);
  if (!share.taken()) return op.ReplyError(EMFILE);
  UniqueFd fd(
      ::openat(fs.FdOf(inode).get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return op.ReplyError(errno);
  auto handle = std::make_unique<DirHandle>(
      fs.NextHandleId(), std::move(fd), inode, fi->flags, fs.open_files(), uid);
  share.Pass();
  op.Through(*handle);
  op.RememberCaller(*handle);
  if (fs.policy().MayCacheListings()) {
    fi->cache_readdir = 1;
    fi->keep_cache = 1;
  }
  Handle* const given = fs.handles().Add(std::move(handle));
  fi->fh = given->ForKernel();
  if (op.End(0, 0, [&] { return fuse_reply_open(req, fi); }) != 0) {
    fs.handles().Remove(*given);
  }
}

void FsReaddir(fuse_req_t req, fuse_ino_t /*ino*/, size_t size, off_t offset,
               fuse_file_info* fi) {
  Read(req, size, offset, fi, /*plus=*/false);
}

void FsReaddirplus(fuse_req_t req, fuse_ino_t /*ino*/, size_t size,
                   off_t offset, fuse_file_info* fi) {
  Read(req, size, offset, fi, /*plus=*/true);
}

void FsReleasedir(fuse_req_t req, fuse_ino_t /*ino*/, fuse_file_info* fi) {
  OpScope op(req, Op::releasedir_);
  DirHandle& dir = DirOf(fi);
  op.About(dir.inode);
  op.Through(dir);
  op.Set(Field::kFlags, static_cast<uint32_t>(fi->flags));
  op.InferCaller(dir);
  op.Begin();
  op.EndAndRemove(dir);
}

void FsFsyncdir(fuse_req_t req, fuse_ino_t /*ino*/, int data_only,
                fuse_file_info* fi) {
  OpScope op(req, Op::fsyncdir_);
  const DirHandle& dir = DirOf(fi);
  op.About(dir.inode);
  op.Through(dir);
  op.Set(Field::kFlags, data_only != 0 ? 1 : 0);
  op.Begin();
  const int fd = dir.Fd(op.fs());
  op.ReplyError((data_only != 0 ? ::fdatasync(fd) : ::fsync(fd)) == 0 ? 0
                                                                      : errno);
}

}  // namespace tracefs
