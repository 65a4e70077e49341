// getattr, setattr, statx, access, readlink, statfs.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <climits>
#include <string>

#include "tracefs/base/clock.h"
#include "tracefs/fs/callers_rights.h"
#include "tracefs/fs/hand_over.h"
#include "tracefs/fs/keep_before.h"
#include "tracefs/fs/op_scope.h"
#include "tracefs/fs/operations.h"

#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif

namespace tracefs {
namespace {

int Fstat(int fd, struct stat* st) {
  return ::fstatat(fd, "", st, AT_EMPTY_PATH) == 0 ? 0 : errno;
}

// chmod(2) of the file behind an O_PATH descriptor.
int Chmod(const FileSystem& fs, int fd, mode_t mode) {
  static std::atomic<bool> has_fchmodat2{true};
  if (has_fchmodat2.load(std::memory_order_relaxed)) {
    if (::syscall(SYS_fchmodat2, fd, "", mode, AT_EMPTY_PATH) == 0) return 0;
    if (errno != ENOSYS) return -1;
    has_fchmodat2.store(false, std::memory_order_relaxed);  // before 6.6
  }
  std::array<char, 16> name{};
  std::to_chars(name.data(), name.data() + name.size() - 1, fd);
  return ::fchmodat(fs.options().proc_self_fd, name.data(), mode, 0);
}

// Truncates by the file's name. EWOULDBLOCK, if `no_wait` is O_NONBLOCK:
// another process holds a lease on it.
int TruncateNamed(FileSystem& fs, Inode& inode, off_t size, int no_wait) {
  const UniqueFd fd(fs.OpenAgain(inode, O_WRONLY | no_wait));
  if (!fd) {
    if (errno == ENXIO) errno = EINVAL;
    return -1;
  }
  // The call was truncate, which may leave the times alone if the size stays;
  // ftruncate always asks for new ones (linux/fs/open.c).
  const std::string path = "/proc/self/fd/" + std::to_string(fd.get());
  if (::truncate(path.c_str(), size) == 0) return 0;
  if (errno != ENOENT && errno != ENOTDIR) return -1;  // there is /proc
  return ::ftruncate(fd.get(), size);
}

int Truncate(OpScope& op, Inode& inode, const fuse_file_info* fi, off_t size,
             bool kill_privileges, int no_wait) {
  FileSystem& fs = op.fs();
  const fuse_ctx* caller = ContextOf(op.req());
  const AsCaller as_caller(caller->uid, caller->gid);
  if (as_caller.error() != 0) return as_caller.error();
  ThreadCredentials::Current().AllowFsetid(!kill_privileges);
  if (fi != nullptr && fi->fh != 0) {
    return ::ftruncate(HandleOf(fi).Fd(fs), size) == 0 ? 0 : errno;
  }
  return WithCallersRights(
      op, inode, [&] { return TruncateNamed(fs, inode, size, no_wait); });
}

// Without KILLPRIV_V2 the kernel clears set-id bits by a chmod, on behalf of
// the writer.
bool OnlyDropsSetId(const FileSystem& fs, int fd, mode_t mode) {
  struct stat st;
  return !fs.told_of_privileged_writes() && Fstat(fd, &st) == 0 &&
         ((st.st_mode & 07777) & ~mode & ~(S_ISUID | S_ISGID)) == 0 &&
         (mode & ~st.st_mode & 07777) == 0;
}

int ChangeMode(OpScope& op, Inode& inode, int fd, mode_t mode) {
  FileSystem& fs = op.fs();
  if (OnlyDropsSetId(fs, fd, mode)) {
    ThreadCredentials::Current().AllowOverrides(kOverrides);
    return Chmod(fs, fd, mode) == 0 ? 0 : errno;
  }
  return WithCallersRights(
      op, inode, [&] { return Chmod(fs, fd, mode); },
      (mode & S_ISGID) != 0 ? SetGid::kMayBeKept : SetGid::kIsNotKept);
}

int ChangeOwners(OpScope& op, Inode& inode, int fd, const struct stat& attr,
                 int to_set) {
  constexpr auto kAsItIs = static_cast<uid_t>(-1);
  const uid_t uid = (to_set & FUSE_SET_ATTR_UID) != 0 ? attr.st_uid : kAsItIs;
  const gid_t gid = (to_set & FUSE_SET_ATTR_GID) != 0 ? attr.st_gid : kAsItIs;
  // Without group-exec the bit may stay. Root may keep it anyway.
  struct stat st;
  const bool root = IsRootWith(op, kFsetid);
  if (root) ThreadCredentials::Current().AllowFsetid(true);
  const bool set_gid =
      !root && Fstat(fd, &st) == 0 && (st.st_mode & S_ISGID) != 0;
  return WithCallersRights(
      op, inode, [&] { return ::fchownat(fd, "", uid, gid, AT_EMPTY_PATH); },
      set_gid ? SetGid::kMayBeKept : SetGid::kIsNotKept);
}

timespec TimeToSet(int to_set, int bit, int now_bit, const timespec& value) {
  if ((to_set & now_bit) != 0) return {0, UTIME_NOW};
  if ((to_set & bit) != 0) return value;
  return {0, UTIME_OMIT};
}

int ChangeTimes(OpScope& op, Inode& inode, int fd, const struct stat& attr,
                int to_set) {
  const std::array<timespec, 2> times = {
      TimeToSet(to_set, FUSE_SET_ATTR_ATIME, FUSE_SET_ATTR_ATIME_NOW,
                attr.st_atim),
      TimeToSet(to_set, FUSE_SET_ATTR_MTIME, FUSE_SET_ATTR_MTIME_NOW,
                attr.st_mtim)};
  return WithCallersRights(op, inode, [&] {
    return ::utimensat(fd, "", times.data(), AT_EMPTY_PATH);
  });
}

// Applies what `to_set` names, in the kernel's order; 0 or an errno.
// `no_wait`: O_NONBLOCK, or 0.
int Apply(OpScope& op, Inode& inode, const struct stat& attr, int to_set,
          const fuse_file_info* fi, int no_wait) {
  const BackingFd fd = op.fs().FdOf(inode);
  constexpr int kOwners = FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID;
  constexpr int kTimes = FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME |
                         FUSE_SET_ATTR_ATIME_NOW | FUSE_SET_ATTR_MTIME_NOW;
  int error = 0;
  if ((to_set & FUSE_SET_ATTR_MODE) != 0) {
    error = ChangeMode(op, inode, fd.get(), attr.st_mode & 07777);
  }
  if (error == 0 && (to_set & kOwners) != 0) {
    error = ChangeOwners(op, inode, fd.get(), attr, to_set);
  }
  if (error == 0 && (to_set & FUSE_SET_ATTR_SIZE) != 0) {
#if TRACEFS_FUSE_AT_LEAST(18)
    const bool kill = (to_set & FUSE_SET_ATTR_KILL_SUID) != 0;
#else
    const bool kill = false;
#endif
    error = Truncate(op, inode, fi, attr.st_size, kill, no_wait);
  }
  if (error == 0 && (to_set & kTimes) != 0) {
    error = ChangeTimes(op, inode, fd.get(), attr, to_set);
  }
  constexpr int kAll = FUSE_SET_ATTR_MODE | kOwners | FUSE_SET_ATTR_SIZE |
                       kTimes | FUSE_SET_ATTR_CTIME;
  return (to_set & kAll) == 0 ? ClearPrivileges(op, inode) : error;
}

void RecordSetattr(OpScope& op, const struct stat& attr, int to_set) {
  if (!op.traced()) return;
  op.Set(Field::kValid, static_cast<uint32_t>(to_set));
  if ((to_set & FUSE_SET_ATTR_MODE) != 0) {
    op.Set(Field::kArgMode, attr.st_mode & 07777);
  }
  if ((to_set & FUSE_SET_ATTR_UID) != 0) op.Set(Field::kNewUid, attr.st_uid);
  if ((to_set & FUSE_SET_ATTR_GID) != 0) op.Set(Field::kNewGid, attr.st_gid);
  if ((to_set & FUSE_SET_ATTR_SIZE) != 0) {
    op.Set(Field::kNewSize, static_cast<uint64_t>(attr.st_size));
  }
  if ((to_set & FUSE_SET_ATTR_ATIME) != 0) {
    op.Set(Field::kNewAtime, NsOf(attr.st_atim));
  }
  if ((to_set & FUSE_SET_ATTR_MTIME) != 0) {
    op.Set(Field::kNewMtime, NsOf(attr.st_mtim));
  }
}

}  // namespace

void FsGetattr(fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi) {
  OpScope op(req, Op::getattr_);
  Inode& inode = op.fs().InodeOf(ino, fi);
  op.About(inode);
  if (fi != nullptr && fi->fh != 0) op.Through(HandleOf(fi));
  op.Begin();
  op.LooksAtFile(inode);
  struct stat st;
  if (const int error = Fstat(op.fs().FdOf(inode).get(), &st); error != 0) {
    return op.ReplyError(error);
  }
  op.Attributes(st);
  // With an open file it comes from lseek(2) and from reads and writes at the
  // end of a file; fstat(2) asks without (linux/fs/fuse/file.c and dir.c).
  const double timeout =
      fi != nullptr ? op.fs().SizeTimeout(inode, st.st_mode, op.begin_ns())
                    : op.fs().AttrTimeout(inode, st.st_mode);
  op.End(0, 0, [&] { return fuse_reply_attr(req, &st, timeout); });
}

namespace {

// `waits`: for a lease holder, which may take long: then it has no order
// relative to the rest.
void Setattr(fuse_req_t req, fuse_ino_t ino, struct stat* attr, int to_set,
             fuse_file_info* fi, bool waits) {
  OpScope op(req, Op::setattr_);
  Inode& inode = op.fs().InodeOf(ino, fi);
  op.About(inode);
  if (fi != nullptr && fi->fh != 0) op.Through(HandleOf(fi));
  RecordSetattr(op, *attr, to_set);
  op.Begin();
  if (!waits) op.ChangesFile(inode.number());
  KeepBefore keep(op);
  if ((to_set & FUSE_SET_ATTR_SIZE) != 0) {
    const int refused =
        keep.Range(inode, static_cast<uint64_t>(attr->st_size), UINT64_MAX);
    if (refused != 0) return op.ReplyError(refused);
  }
  int error = Apply(op, inode, *attr, to_set, fi, waits ? 0 : O_NONBLOCK);
  if (error == EWOULDBLOCK && !waits) {
    if (op.HandOver([req, ino, again = *attr, to_set,
                     file = KeptObject<fuse_file_info>(fi)]() mutable {
          Setattr(req, ino, &again, to_set, file.get(), /*waits=*/true);
        })) {
      return;
    }
    op.GivesUpItsTurn();
    error = Apply(op, inode, *attr, to_set, fi, 0);
  }
  keep.Settle(error == 0);
  struct stat st;
  if (error == 0) error = Fstat(op.fs().FdOf(inode).get(), &st);
  if (error != 0) return op.ReplyError(error);
  op.Attributes(st);
  const double timeout = op.fs().AttrTimeout(inode, st.st_mode);
  op.End(0, 0, [&] { return fuse_reply_attr(req, &st, timeout); });
}

}  // namespace

void FsSetattr(fuse_req_t req, fuse_ino_t ino, struct stat* attr, int to_set,
               fuse_file_info* fi) {
  Setattr(req, ino, attr, to_set, fi, /*waits=*/false);
}

#if TRACEFS_FUSE_AT_LEAST(18)
void FsStatx(fuse_req_t req, fuse_ino_t ino, int flags, int mask,
             fuse_file_info* fi) {
  OpScope op(req, Op::statx_);
  Inode& inode = op.fs().InodeOf(ino, fi);
  op.About(inode);
  if (fi != nullptr && fi->fh != 0) op.Through(HandleOf(fi));
  op.Set(Field::kFlags, static_cast<uint32_t>(flags));
  op.Set(Field::kValid, static_cast<uint32_t>(mask));
  op.Begin();
  op.LooksAtFile(inode);
  struct statx stx;
  constexpr int kSync = AT_STATX_FORCE_SYNC | AT_STATX_DONT_SYNC;
  if (::statx(op.fs().FdOf(inode).get(), "", AT_EMPTY_PATH | (flags & kSync),
              static_cast<unsigned>(mask) | STATX_BASIC_STATS, &stx) != 0) {
    return op.ReplyError(errno);
  }
  const double timeout = op.fs().AttrTimeout(inode, stx.stx_mode);
  op.End(0, 0, [&] { return fuse_reply_statx(req, 0, &stx, timeout); });
}
#endif

void FsAccess(fuse_req_t req, fuse_ino_t ino, int mask) {
  // Only where the mount lacks default_permissions; then the daemon runs as
  // the only user there is.
  OpScope op(req, Op::access_);
  ThreadCredentials::Current().AllowOverrides(kOverrides);
  Inode& inode = op.fs().InodeOf(ino);
  op.About(inode);
  op.Set(Field::kArgMode, static_cast<uint32_t>(mask));
  op.Begin();
  op.LooksAtFile(inode);
  std::array<char, 16> name{};
  const BackingFd fd = op.fs().FdOf(inode);
  std::to_chars(name.data(), name.data() + name.size() - 1, fd.get());
  op.ReplyError(
      ::faccessat(op.fs().options().proc_self_fd, name.data(), mask, 0) == 0
          ? 0
          : errno);
}

void FsReadlink(fuse_req_t req, fuse_ino_t ino) {
  OpScope op(req, Op::readlink_);
  Inode& inode = op.fs().InodeOf(ino);
  op.About(inode);
  op.Begin();
  std::array<char, PATH_MAX + 1> target;
  const ssize_t n = ::readlinkat(op.fs().FdOf(inode).get(), "", target.data(),
                                 target.size() - 1);
  if (n < 0) return op.ReplyError(errno);
  target[static_cast<size_t>(n)] = '\0';
  op.Target({target.data(), static_cast<size_t>(n)});
  op.End(n, 0, [&] { return fuse_reply_readlink(req, target.data()); });
}

void FsStatfs(fuse_req_t req, fuse_ino_t ino) {
  OpScope op(req, Op::statfs_);
  Inode& inode = op.fs().InodeOf(ino == 0 ? FUSE_ROOT_ID : ino);
  op.About(inode);
  op.Begin();
  struct statvfs st;
  if (::fstatvfs(op.fs().FdOf(inode).get(), &st) != 0) {
    return op.ReplyError(errno);
  }
  op.End(0, 0, [&] { return fuse_reply_statfs(req, &st); });
}

}  // namespace tracefs
