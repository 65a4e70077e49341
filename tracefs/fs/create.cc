// mknod, mkdir, symlink, link, create, tmpfile: all run as the caller, so that
// the backing kernel decides owner, group, set-gid inheritance and default ACLs
// (credentials.h), and with no more rights than the caller has
// (callers_rights.h).
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <charconv>

#include "tracefs/fs/callers_rights.h"
#include "tracefs/fs/credentials.h"
#include "tracefs/fs/file_share.h"
#include "tracefs/fs/left_file.h"
#include "tracefs/fs/op_scope.h"
#include "tracefs/fs/open_flags.h"
#include "tracefs/fs/operations.h"

namespace tracefs {
namespace {

// Answers a request that made `name` in `dir`.
void ReplyMade(OpScope& op, Inode& dir, const char* name) {
  FileSystem& fs = op.fs();
  struct stat st;
  Inode* inode = fs.EnterMade(dir, name, &st);
  if (inode == nullptr) {
    op.ReplyError(errno);  // somebody removed it below in the meantime
    return;
  }
  op.About(*inode);
  op.MakesFile(*inode);
  op.Attributes(st);
  const fuse_entry_param entry = fs.EntryParam(*inode, st);
  if (op.End(0, 0, [&] { return fuse_reply_entry(op.req(), &entry); }) != 0) {
    fs.inodes().Release(inode, 1);
  }
}

// Runs `make(dir_fd, mode)` with the caller's ids, rights and umask. 0 or an
// errno.
template <typename Make>
int MakeAsCaller(OpScope& op, Inode& dir, mode_t mode, Make&& make) {
  ThreadCredentials& thread = ThreadCredentials::Current();
  thread.SetUmask(ContextOf(op.req())->umask);
  const BackingFd dir_fd = op.fs().FdOf(dir);
  const std::array touched = {TouchedName{dir_fd.get()}};
  return WithCallersRights(
      op, touched,
      [&] { return make(dir_fd.get(), thread.CreationMode(mode)); },
      (mode & S_ISGID) != 0 ? SetGid::kMayBeKept : SetGid::kIsNotKept);
}

// The number of the file that has the name, if `fits(its attributes)`; else 0.
template <typename Fits>
uint64_t NumberOf(OpScope& op, Inode& dir, const char* name, Fits&& fits) {
  struct stat st;
  return ::fstatat(op.fs().FdOf(dir).get(), name, &st, AT_SYMLINK_NOFOLLOW) ==
                     0 &&
                 fits(st)
             ? st.st_ino
             : 0;
}

// `type`: what it makes.
template <typename Make>
void MakeNode(OpScope& op, Inode& dir, const char* name, mode_t type,
              mode_t mode, Make&& make) {
  op.Begin();
  op.ChangesNames(dir);
  const auto fits = [&](const struct stat& st) {
    return (st.st_mode & S_IFMT) == type;
  };
  if (const int error = op.Once(
          survive::Change::kMakes,
          [&] { return NumberOf(op, dir, name, fits); },
          [&] { return MakeAsCaller(op, dir, mode, make); });
      error != 0) {
    return op.ReplyError(error);
  }
  ReplyMade(op, dir, name);
}

// Answers a request that makes a file and opens it: `make(fd)` does both, 0 or
// an errno. `name`: null for a file that gets none.
template <typename Make>
void MakeOpened(OpScope& op, Inode& dir, const char* name, mode_t arg_mode,
                fuse_file_info* fi, Make&& make) {
  FileSystem& fs = op.fs();
  op.In(dir, name == nullptr ? "" : name);
  op.Set(Field::kFlags, static_cast<uint32_t>(fi->flags));
  op.Set(Field::kArgMode, arg_mode);
  op.Set(Field::kUmask, ContextOf(op.req())->umask);
  op.Begin();
  FileShare share(fs.open_files(), ContextOf(op.req())->uid);
  if (!share.taken()) return op.ReplyError(EMFILE);
  if (name != nullptr) op.ChangesNames(dir);
  UniqueFd fd;
  if (const int error = make(&fd); error != 0) return op.ReplyError(error);
  struct stat st;
  Inode* inode = fs.Enter(dir, name, fd.get(), &st);
  if (inode == nullptr) return op.ReplyError(errno);
  op.About(*inode);
  op.MakesFile(*inode);
  op.Attributes(st);
  IoClaim claim;
  const IoMode mode = fs.ChooseIoMode(
      *inode,
      {.fd = fd.get(), .append_only = false, .set_id = IsSetId(st.st_mode)}, fi,
      &claim);
  auto handle = std::make_unique<Handle>(fs.NextHandleId(), std::move(fd),
                                         *inode, fi->flags, fs.open_files(),
                                         ContextOf(op.req())->uid);
  share.Pass();
  handle->io_mode = mode;
  handle->io_claim = std::move(claim);
  op.Through(*handle);
  op.RememberCaller(*handle);
  const fuse_entry_param entry = fs.EntryParam(*inode, st);
  Handle* const given = fs.handles().Add(std::move(handle));
  fi->fh = given->ForKernel();
  if (op.End(0, 0, [&] { return fuse_reply_create(op.req(), &entry, fi); }) !=
      0) {
    // The request was aborted: no RELEASE will come.
    fs.handles().Remove(*given);
    fs.inodes().Release(inode, 1);
  }
}

// What a daemon before this one has made for the request, or may have; else 0.
uint64_t NumberOfCreated(OpScope& op, Inode& dir, const char* name) {
  const uid_t uid = ContextOf(op.req())->uid;
  return NumberOf(op, dir, name, [uid](const struct stat& st) {
    return S_ISREG(st.st_mode) && st.st_uid == uid && st.st_nlink == 1;
  });
}

// Opens that.
bool OpenMade(OpScope& op, Inode& dir, const char* name, int flags,
              UniqueFd* fd) {
  ThreadCredentials::Current().AllowOverrides(kOverrides);
  const BackingFd in = op.fs().FdOf(dir);
  constexpr int kNotAgain = O_CREAT | O_EXCL | O_TRUNC;
  fd->Reset(::openat(in.get(), name,
                     (OpenFlags(flags) & ~kNotAgain) | O_NOFOLLOW | O_CLOEXEC));
  return fd->valid();
}

}  // namespace

void FsMknod(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode,
             dev_t rdev) {
  OpScope op(req, Op::mknod_);
  Inode& dir = op.fs().InodeOf(parent);
  op.In(dir, name);
  op.Set(Field::kArgMode, mode);
  op.Set(Field::kRdev, rdev);
  op.Set(Field::kUmask, ContextOf(req)->umask);
  const mode_t type = (mode & S_IFMT) != 0 ? mode & S_IFMT : S_IFREG;
  MakeNode(op, dir, name, type, mode,
           [&](int in, mode_t m) { return ::mknodat(in, name, m, rdev); });
}

void FsMkdir(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode) {
  OpScope op(req, Op::mkdir_);
  Inode& dir = op.fs().InodeOf(parent);
  op.In(dir, name);
  op.Set(Field::kArgMode, mode);
  op.Set(Field::kUmask, ContextOf(req)->umask);
  MakeNode(op, dir, name, S_IFDIR, mode,
           [&](int in, mode_t m) { return ::mkdirat(in, name, m); });
}

void FsSymlink(fuse_req_t req, const char* target, fuse_ino_t parent,
               const char* name) {
  OpScope op(req, Op::symlink_);
  Inode& dir = op.fs().InodeOf(parent);
  op.In(dir, name);
  op.Target(target);
  MakeNode(op, dir, name, S_IFLNK, 0, [&](int in, mode_t /*unused*/) {
    return ::symlinkat(target, in, name);
  });
}

void FsLink(fuse_req_t req, fuse_ino_t ino, fuse_ino_t new_parent,
            const char* new_name) {
  OpScope op(req, Op::link_);
  FileSystem& fs = op.fs();
  Inode& inode = fs.InodeOf(ino);
  Inode& dir = fs.InodeOf(new_parent);
  op.About(inode);
  // By the time it is recorded, the new name is the last known one.
  op.ByItsName(inode);
  op.Into(dir, new_name);
  op.Begin();
  op.ChangesNames(dir);
  op.ChangesFile(inode.number());
  const BackingFd fd = fs.FdOf(inode);
  const BackingFd dir_fd = fs.FdOf(dir);
  const auto link = [&] {
    const int rc =
        ::linkat(fd.get(), "", dir_fd.get(), new_name, AT_EMPTY_PATH);
    if (rc == 0 || errno != ENOENT) return rc;
    // Without CAP_DAC_READ_SEARCH the empty path is refused that way.
    std::array<char, 16> number{};
    std::to_chars(number.data(), number.data() + number.size() - 1, fd.get());
    return ::linkat(fs.options().proc_self_fd, number.data(), dir_fd.get(),
                    new_name, AT_SYMLINK_FOLLOW);
  };
  const std::array touched = {TouchedName{dir_fd.get()},
                              TouchedName{fd.get(), ""}};
  const auto is_it = [&](const struct stat& st) {
    return st.st_ino == inode.number();
  };
  int error = op.Once(
      survive::Change::kMakes,
      [&] { return NumberOf(op, dir, new_name, is_it); },
      [&] { return WithCallersRights(op, touched, link); });
  struct stat st;
  if (error == 0 && ::fstatat(fd.get(), "", &st, AT_EMPTY_PATH) != 0) {
    error = errno;
  }
  if (error != 0) return op.ReplyError(error);
  fs.inodes().CountLookup(inode);
  // The kernel looks the new name up before using it, but maybe not the old
  // one, which it knows.
  fs.inodes().AlsoNamed(&inode, &dir, new_name);
  op.Attributes(st);
  const fuse_entry_param entry = fs.EntryParam(inode, st);
  if (op.End(0, 0, [&] { return fuse_reply_entry(req, &entry); }) != 0) {
    fs.inodes().Release(&inode, 1);
  }
}

void FsCreate(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode,
              fuse_file_info* fi) {
  constexpr int kMostTries = 10;
  OpScope op(req, Op::create_);
  Inode& dir = op.fs().InodeOf(parent);
  MakeOpened(op, dir, name, mode, fi, [&](UniqueFd* fd) {
    const auto made = [&] { return NumberOfCreated(op, dir, name); };
    if (survive::WasMade(survive::MayBeMade(), survive::Change::kMakes, made) &&
        OpenMade(op, dir, name, fi->flags, fd)) {
      return 0;
    }
    survive::NoteCall();
    for (int tries = 0; tries < kMostTries; ++tries) {
      // O_EXCL: the kernel asked because there was no such name. If there is
      // one by now, it may be anybody's, and access to it has not been checked.
      const int error = MakeAsCaller(op, dir, mode, [&](int in, mode_t m) {
        fd->Reset(::openat(
            in, name, OpenFlags(fi->flags) | O_CREAT | O_EXCL | O_NOFOLLOW, m));
        return fd->get();
      });
      if (error != EEXIST || (fi->flags & O_EXCL) != 0) return error;
    }
    // The kernel then asks for the name once more, whatever it remembers, and
    // checks and opens what it gets (do_filp_open, LOOKUP_REVAL). But it does
    // so once: where a name comes and goes, we have to keep trying.
    return ESTALE;
  });
}

void FsTmpfile(fuse_req_t req, fuse_ino_t parent, mode_t mode,
               fuse_file_info* fi) {
  OpScope op(req, Op::tmpfile_);
  Inode& dir = op.fs().InodeOf(parent);
  const LeftFile left(op.fs(), RequestSource::OfThread().unique);
  MakeOpened(op, dir, nullptr, mode, fi, [&](UniqueFd* fd) {
    *fd = left.Open();
    if (fd->valid()) return 0;
    return MakeAsCaller(op, dir, mode, [&](int in, mode_t m) {
      // O_EXCL here means "never to be linked into the tree".
      fd->Reset(::openat(
          in, ".", OpenFlags(fi->flags) | O_TMPFILE | (fi->flags & O_EXCL), m));
      return fd->get();
    });
  });
}

}  // namespace tracefs
