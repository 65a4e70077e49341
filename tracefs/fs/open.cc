// open, flush, release, fsync.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <optional>

#include "tracefs/fs/callers_rights.h"
#include "tracefs/fs/extents.h"
#include "tracefs/fs/file_share.h"
#include "tracefs/fs/keep_before.h"
#include "tracefs/fs/op_scope.h"
#include "tracefs/fs/open_flags.h"
#include "tracefs/fs/operations.h"

namespace tracefs {

namespace {

// The kernel reads passthrough files by itself: an open only for reading needs
// no descriptor of ours. One for writing does: our open(2) is what fails for
// append-only, immutable and running files and truncates (the kernel's own does
// neither, linux/fs/backing-file.c).
bool IsOpenedToWrite(int flags) {
  return (flags & (O_ACCMODE | O_TRUNC)) != O_RDONLY;
}

// Whether the file may be a program that runs. The kernel knows which files do
// at the mount, and lets nobody open them for writing; but an open for reading
// that truncates it refuses only when we have answered. Below nothing runs, so
// we would truncate. Of a program's loader, which may be changed while it is
// used, execve(2) opens the same way: it stays whole, too.
bool MayRun(FileSystem& fs, const Inode& inode) {
  bool found = false;
  fs.handles().ForEach([&](const Handle& handle) {
    found |= &handle.inode == &inode && (handle.flags & kFmodeExec) != 0;
  });
  return found;
}

// Truncates, and is no writer in the kernel's eyes.
bool TruncatesAsReader(int flags) {
  const int access = flags & O_ACCMODE;
  return (flags & O_TRUNC) != 0 && access != O_WRONLY && access != O_RDWR;
}

// What an open has come to so far.
struct Opened {
  UniqueFd fd;
  bool append_only = false;
  IoMode mode = IoMode::kCached;
  IoClaim claim;
};

// Opens the file below. 0 or an errno; EWOULDBLOCK, even if the caller did not
// ask for that: another process holds a lease on it, to be waited for
// elsewhere.
int OpenBelow(OpScope& op, Inode& inode, const fuse_file_info& fi, int no_wait,
              Opened* file) {
  FileSystem& fs = op.fs();
  if (!IsOpenedToWrite(fi.flags)) {
    file->fd.Reset(fs.Reopen(inode, OpenFlags(fi.flags) | no_wait));
    return file->fd ? 0 : errno;
  }
  // The caller's group decides whether a set-gid bit is cleared with the rest.
  if ((fi.flags & O_TRUNC) != 0) {
    ThreadCredentials::Current().AllowFsetid(!KillsSetId(fi));
  }
  // What was written since a daemon before this one has truncated it stays.
  const bool truncated = survive::MayBeMade() && survive::NotedBefore() != 0;
  const int flags = OpenFlags(fi.flags) & ~(truncated ? O_TRUNC : 0);
  const int error = WithCallersRights(op, inode, [&] {
    file->fd.Reset(fs.OpenAgain(inode, flags | no_wait));
    if (!file->fd && errno == EPERM && (fi.flags & O_APPEND) != 0) {
      // chattr +a: may be opened only for appending.
      file->fd.Reset(fs.OpenAgain(inode, flags | O_APPEND));
      file->append_only = true;
    }
    return file->fd.get();
  });
  if (error == 0 && (fi.flags & O_TRUNC) != 0) {
    survive::NoteBefore(1);
    survive::NoteCall();
  }
  return error;
}

// How the kernel is to do I/O on a file that was opened to be written. 0 or an
// errno.
int ChooseForWriter(FileSystem& fs, Inode& inode, fuse_file_info* fi,
                    Opened* file) {
  if (file->append_only || inode.append_only()) {
    inode.SetAppendOnly(file->append_only);
  }
  file->mode = fs.ChooseIoMode(
      inode,
      {.fd = file->fd.get(), .append_only = file->append_only, .set_id = {}},
      fi, &file->claim);
  // It must not pass through. If it has to, because others have it open that
  // way, it must not be possible to map it.
  return file->append_only && file->mode == IoMode::kPassthroughDirect &&
                 (fi->flags & O_ACCMODE) == O_RDWR
             ? EPERM
             : 0;
}

}  // namespace

namespace {

// `waits`: for a lease holder, which may take long: then it has no order
// relative to the rest.
void Open(fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi, bool waits) {
  OpScope op(req, Op::open_);
  FileSystem& fs = op.fs();
  Inode& inode = fs.InodeOf(ino);
  op.About(inode);
  op.Set(Field::kFlags, static_cast<uint32_t>(fi->flags));
  // While it is the last that was looked up.
  const uint32_t link_id = inode.link_id();
  op.Begin();
  if ((fi->flags & kFmodeExec) != 0) fs.NoteExec(ContextOf(req)->pid);
  Opened file;
  // Whether a reader needs a descriptor depends on what the kernel will do with
  // the file; what it will do for a writer depends on the descriptor.
  const bool writes = IsOpenedToWrite(fi->flags);
  if (TruncatesAsReader(fi->flags) && MayRun(fs, inode)) {
    return op.ReplyError(ETXTBSY);
  }
  if (!writes) file.mode = fs.ChooseIoMode(inode, {}, fi, &file.claim);
  // A failed open must leave nothing behind when the kernel learns of it.
  const auto fail = [&](int error) {
    file.claim.GiveBack();
    op.ReplyError(error);
  };
  const uint32_t uid = ContextOf(req)->uid;
  std::optional<FileShare> share;
  std::optional<FileShare> counted;
  KeepBefore keep(op);
  if (writes || file.mode != IoMode::kPassthrough) {
    share.emplace(fs.open_files(), uid);
    if (!share->taken()) return fail(EMFILE);
    if ((fi->flags & O_TRUNC) != 0) {
      if (!waits) op.ChangesFile(inode.number());
      const int refused = keep.Range(inode, 0, UINT64_MAX);
      if (refused != 0) return fail(refused);
    }
    int error = OpenBelow(op, inode, *fi, waits ? 0 : O_NONBLOCK, &file);
    if (error == EWOULDBLOCK && !waits && (fi->flags & O_NONBLOCK) == 0) {
      const auto kept = std::make_shared<IoClaim>(std::move(file.claim));
      if (op.HandOver([req, ino, again = *fi, kept]() mutable {
            kept->GiveBack();
            Open(req, ino, &again, /*waits=*/true);
          })) {
        return;
      }
      file.claim = std::move(*kept);
      op.GivesUpItsTurn();
      error = OpenBelow(op, inode, *fi, 0, &file);
    }
    keep.Settle(error == 0);
    if (error == 0 && writes) error = ChooseForWriter(fs, inode, fi, &file);
    if (error != 0) return fail(error);
  } else if (fs.area() != nullptr) {
    counted.emplace(fs.opens_without_descriptor(), uid);
    if (!counted->taken()) return fail(EMFILE);
  }
  auto handle =
      std::make_unique<Handle>(fs.NextHandleId(), std::move(file.fd), inode,
                               fi->flags, fs.open_files(), uid);
  if (share) share->Pass();
  if (counted) {
    counted->Pass();
    handle->CountIn(fs.opens_without_descriptor());
  }
  handle->link_id = link_id;
  handle->append_only = file.append_only;
  handle->io_mode = file.mode;
  handle->io_claim = std::move(file.claim);
  op.Through(*handle);
  op.RememberCaller(*handle);
  Handle* const given = fs.handles().Add(std::move(handle));
  fi->fh = given->ForKernel();
  if (op.End(0, 0, [&] { return fuse_reply_open(req, fi); }) != 0) {
    // The request was aborted: no RELEASE will come.
    fs.handles().Remove(*given);
  }
}

}  // namespace

void FsOpen(fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi) {
  Open(req, ino, fi, /*waits=*/false);
}

void FsFlush(fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi) {
  OpScope op(req, Op::flush_);
  FileSystem& fs = op.fs();
  Handle& handle = HandleOf(fi);
  op.About(handle.inode);
  op.Through(handle);
  op.Set(Field::kLockOwner, fi->lock_owner);
  op.Begin();
  int error = 0;
  if (fs.flush_below()) {
    const int copy = ::fcntl(handle.Fd(fs), F_DUPFD_CLOEXEC, 0);
    if (copy < 0 || ::close(copy) != 0) error = errno;
  }
  if (fs.options().forward_locks) fs.locks().ReleaseOwner(ino, fi->lock_owner);
  op.RememberCaller(handle);
  op.ReplyError(error);
}

void FsRelease(fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi) {
  OpScope op(req, Op::release_);
  FileSystem& fs = op.fs();
  Handle& handle = HandleOf(fi);
  op.About(handle.inode);
  op.Through(handle);
  op.Set(Field::kFlags, static_cast<uint32_t>(fi->flags));
  op.InferCaller(handle);
  op.Begin();
  ExtentsOfWrites extents(op, handle);
  if (fs.options().forward_locks) {
    if (fi->flock_release != 0) {
      fs.locks().FlockRelease(ino, fi->lock_owner);
    }
    fs.locks().ReleaseHandle(ino, handle.id);
  }
  extents.Settle(true);
  op.EndAndRemove(handle);
}

void FsFsync(fuse_req_t req, fuse_ino_t /*ino*/, int data_only,
             fuse_file_info* fi) {
  OpScope op(req, Op::fsync_);
  const Handle& handle = HandleOf(fi);
  op.About(handle.inode);
  op.Through(handle);
  op.Set(Field::kFlags, data_only != 0 ? 1 : 0);
  op.InferCaller(handle);
  op.Begin();
  ExtentsOfWrites extents(op, handle);
  const int fd = handle.Fd(op.fs());
  const int error =
      (data_only != 0 ? ::fdatasync(fd) : ::fsync(fd)) == 0 ? 0 : errno;
  extents.Settle(error == 0);
  op.ReplyError(error);
}

}  // namespace tracefs
