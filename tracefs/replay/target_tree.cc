#include "tracefs/replay/target_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <stdio.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "tracefs/base/file_checksum.h"
#include "tracefs/base/printable.h"
#include "tracefs/format/state_message.h"
#include "tracefs/replay/acl.h"
#include "tracefs/replay/open_beneath.h"

namespace tracefs::replay {
namespace {

// fstat(2) itself, where the struct is the kernel's: what the C library makes
// of it looks at an empty path first.
int StatOf(int fd, struct stat* st) {
#ifdef __x86_64__
  return static_cast<int>(::syscall(SYS_fstat, fd, st));
#else
  return ::fstatat(fd, "", st, AT_EMPTY_PATH);
#endif
}

timespec TimeOf(int64_t ns) {
  int64_t seconds = ns / 1000000000;
  int64_t rest = ns % 1000000000;
  if (rest < 0) {
    rest += 1000000000;
    --seconds;
  }
  return {seconds, rest};
}

}  // namespace

WorkerState::~WorkerState() { std::free(room_); }

std::byte* WorkerState::Room(size_t n) {
  if (n > size_) {
    std::free(room_);
    size_ = (std::max(n, size_t{1} << 17) + kAlignment - 1) / kAlignment *
            kAlignment;
    room_ = static_cast<std::byte*>(std::aligned_alloc(kAlignment, size_));
    if (room_ == nullptr) std::abort();
  }
  return room_;
}

TargetTree::TargetTree(const PlanHeader& header, const TargetOptions& options)
    : options_(options),
      dir_fds_(std::max(header.dir_slots, 1u)),
      handle_fds_(header.handle_slots) {
  for (auto& fd : dir_fds_) fd.store(-1, std::memory_order_relaxed);
  for (auto& fd : handle_fds_) fd.store(-1, std::memory_order_relaxed);
}

TargetTree::~TargetTree() {
  for (const auto& fd : dir_fds_) UniqueFd owned(fd.load());
  for (const auto& fd : handle_fds_) UniqueFd owned(fd.load());
}

std::unique_ptr<TargetTree> TargetTree::Open(UniqueFd folder,
                                             const PlanHeader& header,
                                             const TargetOptions& options) {
  std::unique_ptr<TargetTree> tree(new TargetTree(header, options));
  tree->dir_fds_[kRootSlot] = folder.Release();
  return tree;
}

int TargetTree::DirFd(uint32_t slot) const {
  return slot < dir_fds_.size() ? dir_fds_[slot].load() : -1;
}

int TargetTree::HandleFd(uint32_t slot) const {
  return slot < handle_fds_.size() ? handle_fds_[slot].load() : -1;
}

bool TargetTree::TakeBytes(uint64_t n) {
  if (bytes_written_.fetch_add(n, std::memory_order_relaxed) + n <=
      options_.max_bytes) {
    return true;
  }
  over_quota_ = true;
  errno = EDQUOT;
  return false;
}

bool TargetTree::LeavesOut(Privilege privilege) {
  if (options_.grants.Has(privilege)) return false;
  left_out_.Add(privilege);
  return true;
}

// Why an attribute is not set; none: it is.
std::optional<Privilege> TargetTree::LeavesOutXattr(std::string_view name,
                                                    ByteSpan value) const {
  const auto takes = PrivilegeOfXattr(name, value);
  if (takes == Privilege::kOwner && options_.all_acls) return std::nullopt;
  return takes && options_.grants.Has(*takes) ? std::nullopt : takes;
}

// Set-id bits make a program, or what is made in a directory, run or belong to
// who replays.
mode_t TargetTree::AllowedMode(mode_t mode) {
  const bool set_id = (mode & kSetIdBits) != 0;
  return set_id && LeavesOut(Privilege::kSetId) ? mode & ~kSetIdBits : mode;
}

// Something was these people's, and is made ours.
void TargetTree::NoteOwner(uint32_t uid, uint32_t gid) {
  if (options_.owners_matter && (uid != ::geteuid() || gid != ::getegid())) {
    (void)LeavesOut(Privilege::kOwner);
  }
}

bool TargetTree::TakeInode() {
  if (inodes_made_.fetch_add(1, std::memory_order_relaxed) <
      options_.max_inodes) {
    return true;
  }
  over_quota_ = true;
  errno = EDQUOT;
  return false;
}

// --- The initial tree.

// As format/state_message.h has them. Those that this file system, or user,
// has not are left out. `acls`: those alone, else all others. False with errno.
bool TargetTree::PlaceXattrs(int fd, std::string_view xattrs, bool acls) {
  format::StateRecord state;
  state.xattrs = AsBytes(xattrs);
  const std::string path = FdPath(fd);
  int error = 0;
  (void)state.ForEachXattr([&](std::string_view name, std::string_view value) {
    if (IsAcl(name) != acls) return;
    if (const auto takes = LeavesOutXattr(name, AsBytes(value)); takes) {
      return left_out_.Add(*takes);
    }
    if (::setxattr(path.c_str(), std::string(name).c_str(), value.data(),
                   value.size(), 0) != 0 &&
        errno != EOPNOTSUPP && errno != EPERM && errno != EACCES) {
      error = errno;
    }
  });
  errno = error;
  return error == 0;
}

Status TargetTree::MakeEntry(const TreeEntry& entry, int dir) {
  const auto fail = [&] {
    return Status::System(errno, "initial tree: " + Printable(entry.name));
  };
  const char* const name = entry.name.c_str();
  if (!TakeInode()) return fail();
  const mode_t mode = AllowedMode(entry.mode & 07777);
  int rc = -1;
  if (entry.other_parent != kNoSlot) {
    rc = ::linkat(DirFd(entry.other_parent), entry.other_name.c_str(), dir,
                  name, 0);
    return rc == 0 ? Status() : fail();
  }
  switch (entry.mode & S_IFMT) {
    case S_IFDIR:
      rc = ::mkdirat(dir, name, 0700);
      break;
    case S_IFLNK:
      rc = ::symlinkat(entry.target.empty() ? "unknown" : entry.target.c_str(),
                       dir, name);
      break;
    case S_IFIFO:
    case S_IFSOCK:
      rc = ::mknodat(dir, name, (entry.mode & S_IFMT) | 0600, 0);
      break;
    default: {
      const UniqueFd fd(OpenBeneath(
          dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
      rc = fd ? 0 : -1;
      if (fd && entry.Knows(TreeEntry::kSize) && entry.size != 0) {
        rc = ::ftruncate(fd.get(), static_cast<off_t>(entry.size));
      }
      break;
    }
  }
  if (rc != 0) return fail();
  const UniqueFd fd(OpenBeneath(dir, name, O_PATH | O_NOFOLLOW, 0));
  if (!fd || !DropInheritedAcls(fd.get())) return fail();
  if (!options_.grants.Has(Privilege::kOwner)) {
    if (entry.Knows(TreeEntry::kOwner)) NoteOwner(entry.uid, entry.gid);
  } else if (entry.Knows(TreeEntry::kOwner) &&
             ::fchownat(fd.get(), "", entry.uid, entry.gid, AT_EMPTY_PATH) !=
                 0) {
    return fail();
  }
  // While its owner may write to it; an ACL says who may in the end.
  if (!PlaceXattrs(fd.get(), entry.xattrs, /*acls=*/false)) return fail();
  if (!S_ISLNK(entry.mode) && ChmodFd(fd.get(), mode) != 0) return fail();
  return PlaceXattrs(fd.get(), entry.xattrs, /*acls=*/true) ? Status() : fail();
}

Status TargetTree::Place(const TreeEntry& entry, bool make) {
  const int dir = DirFd(entry.parent);
  if (make) {
    if (Status s = MakeEntry(entry, dir); !s.ok()) return s;
  }
  if (entry.slot < dir_fds_.size()) {  // kNoSlot is beyond all
    const int fd =
        OpenBeneath(dir, entry.name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
    if (fd < 0) {
      return Status::System(errno, "initial tree: " + Printable(entry.name));
    }
    UniqueFd old(dir_fds_[entry.slot].exchange(fd));
  }
  return {};
}

// What was placed before the contents; writing them clears it.
class TargetTree::KeptCapability {
 public:
  KeptCapability(int fd, bool wanted) : fd_(fd) {
    if (wanted) size_ = ::fgetxattr(fd, kName, value_.data(), value_.size());
  }
  bool PutBack() const {
    return size_ <= 0 || ::fsetxattr(fd_, kName, value_.data(),
                                     static_cast<size_t>(size_), 0) == 0;
  }

 private:
  static constexpr char kName[] = "security.capability";
  const int fd_;
  std::array<char, 64> value_;
  ssize_t size_ = 0;
};

Status TargetTree::PlaceData(const InitialData& data) {
  const UniqueFd file(
      OpenBeneath(DirFd(data.parent), data.name, O_PATH | O_NOFOLLOW));
  const UniqueFd fd(OpenAsOwner(file.get(), O_WRONLY | O_NONBLOCK));
  size_t done = 0;
  if (!TakeBytes(data.bytes.size())) {
    return Status::System(errno, "initial contents");
  }
  const KeptCapability capability(
      fd.get(), options_.grants.Has(Privilege::kSecurityXattr));
  while (fd && done < data.bytes.size()) {
    const ssize_t n =
        ::pwrite(fd.get(), data.bytes.data() + done, data.bytes.size() - done,
                 static_cast<off_t>(data.offset + done));
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  if (done == data.bytes.size() && fd && capability.PutBack()) return {};
  return Status::System(errno, "initial contents of " + Printable(data.name));
}

Result<uint32_t> TargetTree::ChecksumOf(const TreeEntry& entry) {
  const UniqueFd file(
      OpenBeneath(DirFd(entry.parent), entry.name, O_PATH | O_NOFOLLOW));
  const UniqueFd fd(OpenAsOwner(file.get(), O_RDONLY | O_NONBLOCK));
  const std::optional<uint32_t> crc =
      fd ? FileChecksum(fd.get()) : std::nullopt;
  if (!crc) return Status::System(errno, Printable(entry.name));
  return *crc;
}

// --- Operations.

void TargetTree::Become(const Action& action, WorkerState& worker) {
  if (!worker.begun_) {
    worker.begun_ = true;
    // An umask, and users, of this thread alone.
    ::unshare(CLONE_FS);
    GiveUpCapabilities(options_.grants);
  }
  if (!options_.grants.Has(Privilege::kOwner)) return;
  if (worker.gid_ != action.gid) {
    ::setfsgid(action.gid);
    worker.gid_ = action.gid;
  }
  if (worker.uid_ != action.uid) {
    ::setfsuid(action.uid);
    worker.uid_ = action.uid;
    // A trace does not tell which further groups somebody was in.
    if (options_.only_what_was_done) ReachEverything();
  }
}

// Whether all that it came to is its error. Whether a name is there is looked
// at again: it tells whether this tree is as that one was.
bool TargetTree::DidNothing(const Action& action) const {
  return options_.only_what_was_done && action.error != 0 &&
         !(action.op == Op::lookup_ && action.error == ENOENT);
}

void TargetTree::Do(const Action& action, WorkerState& worker, Done* done) {
  if (DidNothing(action)) {
    done->result = -1;
    done->error = static_cast<int>(action.error);
    return;
  }
  Become(action, worker);
  switch (action.op) {
    case Op::mknod_:
    case Op::mkdir_:
    case Op::create_:
    case Op::tmpfile_:
      if (worker.umask_ != action.umask) {
        ::umask(action.umask & 0777);
        worker.umask_ = action.umask;
      }
      return action.op == Op::create_ || action.op == Op::tmpfile_
                 ? OpenFile(action, done)
                 : Make(action, done);
    case Op::symlink_:
      return Make(action, done);
    case Op::lookup_:
    case Op::getattr_:
    case Op::statx_:
    case Op::readlink_:
    case Op::access_:
    case Op::statfs_:
      return Look(action, done);
    case Op::open_:
    case Op::opendir_:
      return OpenFile(action, done);
    case Op::unlink_:
    case Op::rmdir_:
      return Remove(action, done);
    case Op::rename_:
      return Rename(action, done);
    case Op::link_:
      return Link(action, done);
    case Op::read_:
      return Read(action, worker, done);
    case Op::write_:
      return Write(action, worker, done);
    case Op::copy_file_range_:
      return Copy(action, worker, done);
    case Op::release_:
    case Op::releasedir_:
      return Close(action);
    case Op::setattr_:
      return SetAttributes(action, done);
    case Op::readdir_:
      return Readdir(action, worker, done);
    case Op::setxattr_:
    case Op::getxattr_:
    case Op::listxattr_:
    case Op::removexattr_:
      return Xattr(action, worker, done);
    case Op::setlk_:
    case Op::flock_:
    case Op::flush_:
      return SetLock(action, done);
    case Op::fsync_:
    case Op::fsyncdir_:
    case Op::fallocate_:
    case Op::lseek_:
      return SyncOrSeek(action, done);
    case Op::getlk_:
    case Op::ioctl_:
    case Op::poll_:
      done->skipped = true;
  }
}

// What an action is about, opened with O_PATH where it has to be.
class TargetTree::Reached {
 public:
  Reached(const TargetTree& tree, const Action& a) {
    if (a.place == Place::kHandle) {
      fd_ = tree.HandleFd(a.handle);
    } else if (a.place == Place::kDir) {
      fd_ = tree.DirFd(a.dir);
    } else if (a.place == Place::kName) {
      owned_.Reset(OpenBeneath(tree.DirFd(a.dir), a.name, O_PATH | O_NOFOLLOW));
      fd_ = owned_.get();
      if (fd_ < 0) return;
    }
    if (fd_ < 0) errno = EBADF;
  }
  int fd() const { return fd_; }

 private:
  UniqueFd owned_;
  int fd_ = -1;
};

void TargetTree::Look(const Action& a, Done* done) {
  if (a.op == Op::lookup_ || a.op == Op::getattr_ || a.op == Op::statx_) {
    int rc;
    if (a.place == Place::kName) {
      const NameText name(a.name);
      rc =
          ::fstatat(DirFd(a.dir), name.c_str(), &done->st, AT_SYMLINK_NOFOLLOW);
    } else {
      rc = StatOf(a.place == Place::kDir ? DirFd(a.dir) : HandleFd(a.handle),
                  &done->st);
    }
    Set(done, rc);
    done->has_stat = rc == 0;
    return;
  }
  if (a.op == Op::statfs_) {
    struct statfs st;
    return Set(done, ::fstatfs(root(), &st));
  }
  const Reached at(*this, a);
  if (at.fd() < 0) return Set(done, -1);
  if (a.op == Op::access_) {
    // There is no link at the end of this one: O_PATH has not followed it.
    return Set(done, ::faccessat(AT_FDCWD, FdPath(at.fd()).c_str(),
                                 static_cast<int>(a.mode & 7), AT_EACCESS));
  }
  std::array<char, 4097> target;
  const ssize_t n = ::readlinkat(at.fd(), "", target.data(), target.size() - 1);
  Set(done, n);
  if (n >= 0) done->text.assign(target.data(), static_cast<size_t>(n));
}

void TargetTree::Make(const Action& a, Done* done) {
  const int dir = DirFd(a.dir);
  const NameText name(a.name);
  const auto type = a.mode & S_IFMT;
  if (a.op == Op::mknod_ && (type == S_IFCHR || type == S_IFBLK) &&
      !options_.grants.Has(Privilege::kDevice)) {
    return MakeInstead(a, done);
  }
  if (a.error == 0) NoteOwner(a.uid, a.gid);
  if (!TakeInode()) return Set(done, -1);
  if (a.op == Op::symlink_) {
    const std::string target(a.text);
    return Set(done, ::symlinkat(target.c_str(), dir, name.c_str()));
  }
  if (a.op == Op::mknod_) {
    return Set(done, ::mknodat(dir, name.c_str(),
                               (a.mode & S_IFMT) | AllowedMode(a.mode & 07777),
                               static_cast<dev_t>(a.rdev)));
  }
  Set(done, ::mkdirat(dir, name.c_str(), AllowedMode(a.mode & 07777)));
  if (done->error != 0 || a.made_dir >= dir_fds_.size()) return;
  const int fd = OpenBeneath(dir, a.name, O_PATH | O_DIRECTORY | O_NOFOLLOW);
  UniqueFd old(dir_fds_[a.made_dir].exchange(fd));
}

// For a device node: something bears the name, so that what follows finds it.
void TargetTree::MakeInstead(const Action& a, Done* done) {
  done->skipped = true;
  if (a.error != 0) return;
  (void)LeavesOut(Privilege::kDevice);
  done->left_out = Privilege::kDevice;
  const UniqueFd fd(OpenBeneath(DirFd(a.dir), a.name,
                                O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW,
                                a.mode & 0777));
}

void TargetTree::OpenFile(const Action& a, Done* done) {
  // O_APPEND would put what is written elsewhere than the trace says. Whatever
  // opens a pipe does not wait for its other end.
  int flags =
      static_cast<int>(a.arg_flags) & (O_ACCMODE | O_TRUNC | O_SYNC | O_DSYNC);
  flags |= O_NONBLOCK | O_CLOEXEC;
  if (options_.direct && a.op != Op::opendir_) flags |= O_DIRECT;
  const bool makes = a.op == Op::create_ || a.op == Op::tmpfile_;
  const mode_t mode = makes ? AllowedMode(a.mode & 07777) : 0;
  if (makes && a.error == 0) NoteOwner(a.uid, a.gid);
  int fd;
  const auto open = [&] {
    if (a.op == Op::create_) {
      return OpenBeneath(DirFd(a.dir), a.name,
                         flags | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
    }
    if (a.op == Op::tmpfile_) {
      return OpenBeneath(
          DirFd(a.dir), ".",
          flags | O_TMPFILE | static_cast<int>(a.arg_flags & O_EXCL), mode);
    }
    if (a.op == Op::opendir_) {
      return OpenBeneath(DirFd(a.dir), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    if (a.place == Place::kHandle) {
      return ::open(FdPath(HandleFd(a.handle_out)).c_str(), flags);
    }
    return OpenBeneath(DirFd(a.dir), a.name, flags | O_NOFOLLOW);
  };
  if (makes && !TakeInode()) return Set(done, -1);
  fd = open();
  if (fd < 0 && errno == EINVAL && (flags & O_DIRECT) != 0) {
    flags &= ~O_DIRECT;
    fd = open();
  }
  Set(done, fd);
  if (fd < 0) return;
  done->result = 0;
  if (a.handle >= handle_fds_.size() || a.error != 0) {
    ::close(fd);
    return;
  }
  UniqueFd old(handle_fds_[a.handle].exchange(fd));
}

void TargetTree::Remove(const Action& a, Done* done) {
  const NameText name(a.name);
  Set(done, ::unlinkat(DirFd(a.dir), name.c_str(),
                       a.op == Op::rmdir_ ? AT_REMOVEDIR : 0));
  if (done->error == 0 && a.made_dir < dir_fds_.size()) {
    UniqueFd old(dir_fds_[a.made_dir].exchange(-1));
  }
}

void TargetTree::Rename(const Action& a, Done* done) {
  const NameText name(a.name);
  const NameText new_name(a.new_name);
  // A whiteout is a device node.
  uint32_t flags = a.arg_flags;
  if ((flags & RENAME_WHITEOUT) != 0 && LeavesOut(Privilege::kDevice)) {
    flags &= ~static_cast<uint32_t>(RENAME_WHITEOUT);
  }
  Set(done, ::syscall(SYS_renameat2, DirFd(a.dir), name.c_str(),
                      DirFd(a.new_dir), new_name.c_str(), flags));
}

void TargetTree::Link(const Action& a, Done* done) {
  const NameText new_name(a.new_name);
  if (a.place == Place::kName) {
    const NameText name(a.name);
    return Set(done, ::linkat(DirFd(a.dir), name.c_str(), DirFd(a.new_dir),
                              new_name.c_str(), 0));
  }
  const Reached at(*this, a);
  Set(done, at.fd() < 0
                ? -1
                : ::linkat(AT_FDCWD, FdPath(at.fd()).c_str(), DirFd(a.new_dir),
                           new_name.c_str(), AT_SYMLINK_FOLLOW));
}

void TargetTree::Close(const Action& a) {
  if (a.handle >= handle_fds_.size()) return;
  UniqueFd old(handle_fds_[a.handle].exchange(-1));
}

void TargetTree::SetAttributes(const Action& a, Done* done) {
  constexpr uint32_t kTimes =
      FATTR_ATIME | FATTR_MTIME | FATTR_ATIME_NOW | FATTR_MTIME_NOW;
  const Reached at(*this, a);
  if (at.fd() < 0) return Set(done, -1);
  if ((a.valid & FATTR_MODE) != 0 &&
      ChmodFd(at.fd(), AllowedMode(a.mode & 07777)) != 0) {
    return Set(done, -1);
  }
  const bool gives_away = (a.valid & (FATTR_UID | FATTR_GID)) != 0;
  if (gives_away && !options_.grants.Has(Privilege::kOwner)) {
    if (a.error == 0 && options_.owners_matter) {
      (void)LeavesOut(Privilege::kOwner);
    }
  } else if (gives_away) {
    const uid_t uid =
        (a.valid & FATTR_UID) != 0 ? a.new_uid : static_cast<uid_t>(-1);
    const gid_t gid =
        (a.valid & FATTR_GID) != 0 ? a.new_gid : static_cast<gid_t>(-1);
    if (::fchownat(at.fd(), "", uid, gid, AT_EMPTY_PATH) != 0) {
      return Set(done, -1);
    }
  }
  if ((a.valid & FATTR_SIZE) != 0) {
    int rc;
    if (a.place == Place::kHandle) {
      rc = ::ftruncate(at.fd(), static_cast<off_t>(a.new_size));
    } else {
      const UniqueFd fd(
          ::open(FdPath(at.fd()).c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
      rc = fd ? ::ftruncate(fd.get(), static_cast<off_t>(a.new_size)) : -1;
    }
    if (rc != 0) return Set(done, -1);
  }
  if ((a.valid & kTimes) != 0) {
    std::array<timespec, 2> times = {timespec{0, UTIME_OMIT},
                                     timespec{0, UTIME_OMIT}};
    if ((a.valid & FATTR_ATIME) != 0) times[0] = TimeOf(a.new_atime_ns);
    if ((a.valid & FATTR_MTIME) != 0) times[1] = TimeOf(a.new_mtime_ns);
    if ((a.valid & FATTR_ATIME_NOW) != 0) times[0] = {0, UTIME_NOW};
    if ((a.valid & FATTR_MTIME_NOW) != 0) times[1] = {0, UTIME_NOW};
    if (::utimensat(at.fd(), "", times.data(), AT_EMPTY_PATH) != 0) {
      return Set(done, -1);
    }
  }
  done->has_stat = ::fstatat(at.fd(), "", &done->st, AT_EMPTY_PATH) == 0;
}

}  // namespace tracefs::replay
