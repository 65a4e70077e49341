#include "tracefs/fs/file_system.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>

#include "tracefs/base/clock.h"
#include "tracefs/fs/credentials.h"
#include "tracefs/fs/extents.h"
#include "tracefs/fs/hand_over.h"
#include "tracefs/fs/hold_gate.h"
#include "tracefs/fs/op_scope.h"
#include "tracefs/fs/open_flags.h"
#include "tracefs/fs/operations.h"
#include "tracefs/fs/read_state.h"

namespace tracefs {
namespace {

// The type of the file system that `fd` lies on, as statfs(2) says; 0: not
// known.
unsigned long TypeOf(int fd) {
  struct statfs st;
  return ::fstatfs(fd, &st) == 0 ? static_cast<unsigned long>(st.f_type) : 0;
}

// File systems that ask a server, which may check the ids of each caller, and
// that have work to do at each close(2).
bool IsServed(unsigned long type) {
  switch (type) {
    case NFS_SUPER_MAGIC:
    case SMB_SUPER_MAGIC:
    case CIFS_SUPER_MAGIC:
    case SMB2_SUPER_MAGIC:
    case FUSE_SUPER_MAGIC:
    case CEPH_SUPER_MAGIC:
    case AFS_SUPER_MAGIC:
    case V9FS_MAGIC:
    case 0:
      return true;
    default:
      return false;
  }
}

// File systems that themselves lie over another.
bool IsStacked(unsigned long type) {
  return type == OVERLAYFS_SUPER_MAGIC || type == ECRYPTFS_SUPER_MAGIC ||
         type == 0;
}

// File systems known to have no blocks that only root may use up.
bool HasNoReserve(unsigned long type) {
  return type == TMPFS_MAGIC || type == RAMFS_MAGIC ||
         type == XFS_SUPER_MAGIC || type == BTRFS_SUPER_MAGIC;
}

// A file by which handles can be opened, if that is possible at all: it needs a
// file system that has handles, and CAP_DAC_READ_SEARCH.
UniqueFd MountForHandles(int root) {
  UniqueFd mount(::openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const CompactHandle handle = CompactHandle::Of(root, "");
  if (!mount || !handle || !handle.Open(mount.get())) mount.Reset();
  return mount;
}

}  // namespace

Result<std::unique_ptr<FileSystem>> FileSystem::Create(
    FileSystemOptions options, UniqueFd root, EventSink& sink,
    const NameMatcher& names, ProcessTable& processes) {
  struct stat st;
  if (::fstatat(root.get(), "", &st, AT_EMPTY_PATH) != 0) {
    return Status::System(errno, "source directory");
  }
  if (!S_ISDIR(st.st_mode)) return Status::System(ENOTDIR, "source directory");
  std::unique_ptr<FileSystem> fs(
      new FileSystem(options, sink, names, processes));
  if (options.file_handles) {
    fs->inodes_.SetMount(MountForHandles(root.get()));
  }
  const unsigned long type = TypeOf(root.get());
  fs->flush_below_ = fs->asks_as_caller_ = IsServed(type);
  fs->may_hang_below_ = IsServed(type) || type == AUTOFS_SUPER_MAGIC;
  fs->waits_.SetUp(fs->may_hang_below_);
  fs->stacked_below_ = IsStacked(type);
  fs->keeps_reserve_ = !HasNoReserve(type);
  fs->lists_trusted_ = type == BTRFS_SUPER_MAGIC;
  if (fs->flush_below_ || options.forward_locks) {
    fs->policy_.SetFlushNeeded();
  }
  Inode* const top = fs->inodes_.InsertRoot(std::move(root), st);
  if (options.lasting_handles) {
    fs->lasting_ids_ =
        LastingIds::Of(fs->FdOf(*top).get(), st, options.whole_file_system);
    if (fs->lasting_ids_ == nullptr || !fs->inodes_.OpensHandles()) {
      return Status::System(
          ENOTSUP,
          "--handles yes: files of the source cannot be opened by handles; it "
          "has to lie on ext4, XFS, btrfs, f2fs or tmpfs, and root has to mount"
          " it");
    }
    fs->inodes_.SetLastingIds(fs->lasting_ids_.get());
  }
  return fs;
}

CachePolicy::DataInterest FileSystem::DataOf(Inode& inode) {
  Event facts;
  facts.resolver = this;
  facts.node = inode.id();
  facts.Set(Field::kInode, inode.number());
  facts.Set(Field::kType, inode.type());
  facts.name_generation = names_.generation();
  facts.name_bits = inodes_.NameBits(inode, names_, facts.name_generation);
  return policy_.DataOf(facts);
}

int32_t FileSystem::BackingIdOf(Inode& inode) {
  const int32_t known = inode.backing_id();
  if (known != 0) return known;
  if (!policy_.passthrough() || !inode.is_regular()) return -1;
  // All the kernel's I/O is done with the credentials of this thread, whoever
  // writes: not with root's, which may use up what ext4 reserves. Without
  // CAP_FSETID, so that the backing kernel clears set-user-id.
  ThreadCredentials& thread = ThreadCredentials::Current();
  if (keeps_reserve_ && !asks_as_caller_) thread.BecomeOrdinary();
  thread.AllowFsetid(false);
  // The kernel keeps what it is given until the inode is forgotten. With a
  // writable descriptor, a program could not be run below.
  const int32_t id = backing_.Open(FdOf(inode).get());
  const int32_t set = inode.SetBackingId(id > 0 ? id : -1);
  inodes_.NoteChange(inode);
  if (id > 0 && set != id) backing_.Close(id);  // another thread was first
  return set;
}

// A mapping of the backing file would store what no write may: the kernel
// checks its own inode, which has no such flag. The file is checked before it
// first passes through, and again while it had the flag when last opened.
bool FileSystem::IsAppendOnly(Inode& inode) {
  if (!inode.is_regular()) return false;
  if (!inode.append_only() &&
      (inode.backing_id() != 0 || !policy_.passthrough())) {
    return false;
  }
  struct statx stx;
  const bool is = ::statx(FdOf(inode).get(), "",
                          AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &stx) == 0 &&
                  (stx.stx_attributes & STATX_ATTR_APPEND) != 0;
  inode.SetAppendOnly(is);
  return is;
}

// Also if that cannot be told.
bool FileSystem::MayBeSetId(Inode& inode, int fd) {
  struct stat st;
  return ::fstatat(fd >= 0 ? fd : FdOf(inode).get(), "", &st, AT_EMPTY_PATH) !=
             0 ||
         IsSetId(st.st_mode);
}

IoMode FileSystem::ChooseIoMode(Inode& inode, const OpenFacts& facts,
                                fuse_file_info* fi, IoClaim* claim) {
  CachePolicy::DataInterest data = DataOf(inode);
  // It makes no difference to what is seen anyway.
  const bool append_only =
      facts.append_only ? *facts.append_only
                        : !(data.calls && data.pages) && IsAppendOnly(inode);
  // Past the page cache, in which forged pages of a mapping may lie.
  data.calls |= append_only;
  const bool passes = inode.io_opens().Enter(!data.pages && !append_only &&
                                             BackingIdOf(inode) > 0);
  // If it passes through it has a number: from us, or from existing opens.
  const int32_t id = inode.backing_id();
  *claim = IoClaim(inode.io_opens(), passes);
  // The kernel's cached attributes do not change with stores to a map.
  if (passes && (fi->flags & O_ACCMODE) == O_RDWR &&
      inode.io_opens().ExpectStores()) {
    inodes_.NoteChange(inode);
    ForgetAttributes(inode);
  }
  if (!passes && data.any() && (fi->flags & O_ACCMODE) == O_RDWR) {
    inode.ExpectCachedStores();
    inodes_.NoteChange(inode);
  }
  // The kernel's own writes would clear set-id bits even for privileged callers
  // (BackingIdOf): where there are such bits, we write.
  if (passes && (fi->flags & O_ACCMODE) != O_RDONLY) {
    data.calls |= facts.set_id ? *facts.set_id : MayBeSetId(inode, facts.fd);
  }
  const IoMode mode = CachePolicy::ModeFor(data, passes);
  // An open that was handed over has been here before.
  const bool direct =
      mode == IoMode::kDirect || mode == IoMode::kPassthroughDirect;
  fi->direct_io = direct ? 1 : 0;
#if TRACEFS_FUSE_AT_LEAST(15)
  fi->parallel_direct_writes = direct ? 1 : 0;
#endif
#if TRACEFS_FUSE_AT_LEAST(17)
  fi->backing_id = passes ? id : 0;
#endif
  fi->noflush = policy_.NeedsFlush() ? 0 : 1;
  return mode;
}

int FileSystem::OpenAgain(Inode& inode, int flags) {
  if (!inode.is_regular() && !inode.is_dir()) {
    errno = ENXIO;
    return -1;
  }
  constexpr int kNotOurs = O_CREAT | O_EXCL | O_NOCTTY | O_NOFOLLOW;
  return OpenAnew(inode, (flags & ~(kNotOurs | kFmodeExec)) | O_CLOEXEC);
}

int FileSystem::Reopen(Inode& inode, int flags) {
  const int fd = OpenAgain(inode, flags);
  // It often succeeds with fewer than all rights.
  ThreadCredentials& thread = ThreadCredentials::Current();
  if (fd >= 0 || (errno != EACCES && errno != EPERM) ||
      thread.has_overrides()) {
    return fd;
  }
  thread.AllowOverrides(kOverrides);
  return OpenAgain(inode, flags);
}

int FileSystem::OpenAnew(Inode& inode, int flags) {
  UniqueFd by_handle = inodes_.OpenByHandle(inode, flags);
  if (by_handle || errno != ENOTSUP) return by_handle.Release();
  const BackingFd fd = FdOf(inode);
  if (fd.get() < 0) {
    errno = LostFdError();
    return -1;
  }
  std::array<char, 16> name;
  *std::to_chars(name.data(), name.data() + name.size() - 1, fd.get()).ptr =
      '\0';
  return ::openat(options_.proc_self_fd, name.data(), flags);
}

fuse_entry_param FileSystem::EntryParam(const Inode& inode,
                                        const struct stat& st) const {
  fuse_entry_param entry{};
  entry.ino = inode.id();
  if (lasting_ids_) entry.generation = lasting_ids_->GenerationOf(inode.id());
  entry.attr = st;
  entry.entry_timeout = policy_.EntryTimeout();
  // Requests name only the file. If it has several names, the one looked up
  // last is the one in use.
  if (HasSeveralNames(st) && policy_.TracesAny()) {
    entry.entry_timeout = 0;
  }
  entry.attr_timeout = AttrTimeout(inode, st.st_mode);
  return entry;
}

void FileSystem::ForgetAttributes(const Inode& inode) const {
  if (policy_.visibility() == Visibility::kExact) return;  // keeps none
  // Attributes alone: the kernel takes no lock of the file's for that. It fails
  // if the kernel does not know the inode, and so caches nothing.
  static_cast<void>(
      fuse_lowlevel_notify_inval_inode(session_, inode.id(), -1, 0));
}

void FileSystem::SetUpWorker([[maybe_unused]] fuse_req_t req, int policy) {
#if TRACEFS_FUSE_AT_LEAST(18)
  if (fuse_req_is_uring(req)) rings_serve_ = true;
#endif
  if (policy != kAsItIs && options_.set_up_worker != nullptr) {
    options_.set_up_worker(policy);
  }
}

bool FileSystem::MayHandOver([[maybe_unused]] fuse_req_t req) const {
  if (HandedRequest::Current() != nullptr || !side_pool_.started()) {
    return false;
  }
#if TRACEFS_FUSE_AT_LEAST(18)
  if (fuse_req_is_uring(req)) {
    return RequestSource::OfThread().replies != nullptr;
  }
#endif
  return true;
}

void FileSystem::ReleaseAll() {
  // No lock that is still waited for will come.
  locks_.Clear();
  while (Handle* const left = handles_.Any()) {
    std::unique_ptr<Handle> handle;
    OpScope op(*this, left->inode.is_dir() ? Op::releasedir_ : Op::release_);
    op.About(left->inode);
    op.Through(*left);
    op.Set(Field::kFlags, static_cast<uint32_t>(left->flags));
    op.InferCaller(*left);
    ExtentsOfWrites extents(op, *left);
    extents.Settle(true);
    // Recorded first: a later daemon ends the mount with what is still there.
    op.End(0, 0, [&] {
      handle = handles_.Remove(*left);
      return 0;
    });
    // Closing might hang, or a thread that does use it: the process ends soon.
    if (may_hang_below_) static_cast<void>(handle.release());
  }
}

void FileSystem::NegotiateFeatures(fuse_conn_info* conn) {
#if TRACEFS_FUSE_AT_LEAST(17)
  const auto want = [&](uint64_t flag, bool on) {
    if (on) {
      return fuse_set_feature_flag(conn, flag);
    }
    fuse_unset_feature_flag(conn, flag);
    return false;
  };
#else
  const auto want = [&](uint64_t flag, bool on) {
    const auto bit = static_cast<unsigned>(flag);
    if (on && (conn->capable & bit) != 0) {
      conn->want |= bit;
      return true;
    }
    conn->want &= ~bit;
    return false;
  };
#endif
  // The kernel decides permissions with the caller's real groups; we pass the
  // mode on unmasked so that default ACLs work as they do below.
  want(FUSE_CAP_DONT_MASK, true);
  want(FUSE_CAP_POSIX_ACL, true);
  want(FUSE_CAP_ATOMIC_O_TRUNC, true);
  want(FUSE_CAP_PARALLEL_DIROPS, true);
  want(FUSE_CAP_ASYNC_DIO, true);
  want(FUSE_CAP_ASYNC_READ, true);
  want(FUSE_CAP_AUTO_INVAL_DATA, true);
  want(FUSE_CAP_IOCTL_DIR, true);
  want(FUSE_CAP_READDIRPLUS, true);
  want(FUSE_CAP_READDIRPLUS_AUTO, true);
  want(FUSE_CAP_CACHE_SYMLINKS, options_.visibility == Visibility::kFast);
  // It would be invisible who wrote what.
  want(FUSE_CAP_WRITEBACK_CACHE, false);
  // Slower than copying at the sizes that matter.
  want(FUSE_CAP_SPLICE_READ, false);
  want(FUSE_CAP_SPLICE_WRITE, false);
  want(FUSE_CAP_SPLICE_MOVE, false);
  want(FUSE_CAP_EXPORT_SUPPORT, looks_up_by_id());
  want(FUSE_CAP_POSIX_LOCKS, options_.forward_locks);
  want(FUSE_CAP_FLOCK_LOCKS, options_.forward_locks);
#if TRACEFS_FUSE_AT_LEAST(17)
  want(FUSE_CAP_NO_EXPORT_SUPPORT, !looks_up_by_id());
  want(FUSE_CAP_DIRECT_IO_ALLOW_MMAP, true);
  // Page faults of a passthrough file are not reported: not where everything is
  // to be seen. A server would be asked as the first user of the file, whoever
  // reads it.
  policy_.SetPassthrough(want(FUSE_CAP_PASSTHROUGH,
                              options_.passthrough && !asks_as_caller_ &&
                                  options_.visibility != Visibility::kExact));
  conn->max_backing_stack_depth = stacked_below_ ? 1 : 0;
  // Saves a lock and a list operation for each request. A lock that is waited
  // for must stay interruptible.
  conn->no_interrupt = options_.forward_locks ? 0 : 1;
#endif
#if TRACEFS_FUSE_AT_LEAST(18)
  // Writes to set-user-id files are told to us, instead of a GETXATTR with
  // each write to any file. Before 3.18.3 libfuse loses the
  // flag.
  told_of_privileged_writes_ = want(FUSE_CAP_HANDLE_KILLPRIV_V2, true);
#endif
  conn->max_write = 1 << 20;
  if (options_.max_read != 0) conn->max_read = options_.max_read;
  conn->max_readahead = 1 << 20;
  // Requests that hang below count, and must not hold up others.
  conn->max_background = may_hang_below_ ? 1024 : 64;
  conn->congestion_threshold = conn->max_background * 3 / 4;
  NoteAgreed(*conn);
}

namespace {

// The handler, after the gate of tracers that fail operations rather than miss
// them (LossPolicy::kFail), and of holds.
template <Op kOp, auto kHandler, typename... Arguments>
void Gated(fuse_req_t req, Arguments... arguments) {
  EventSink& sink = FileSystem::Of(req).sink();
  if ((sink.InterestIn(kOp) & EventSink::kGate) != 0 && sink.Refuses(kOp)) {
    fuse_reply_err(req, EIO);
    return;
  }
  const auto handler = [](fuse_req_t r, Arguments... a) { kHandler(r, a...); };
  if constexpr (CanBeHeld(kOp)) {
    if (FileSystem::Of(req).holds().any()) [[unlikely]] {
      if (IsHeld<kOp>(req, handler, arguments...)) return;
    }
  }
  Serve<kOp>(req, handler, arguments...);
}

// The same for handlers with data behind a pointer.
void GatedWrite(fuse_req_t req, fuse_ino_t ino, const char* data, size_t size,
                off_t offset, fuse_file_info* fi) {
  Gated<Op::write_, [](fuse_req_t r, fuse_ino_t i, RequestBytes bytes, off_t o,
                       fuse_file_info* f) {
    FsWrite(r, i, static_cast<const char*>(bytes.data), bytes.size, o, f);
  }>(req, ino, RequestBytes{data, size}, offset, fi);
}

void GatedSetxattr(fuse_req_t req, fuse_ino_t ino, const char* name,
                   const char* value, size_t size, int flags) {
  Gated<Op::setxattr_, [](fuse_req_t r, fuse_ino_t i, const char* n,
                          RequestBytes bytes, int f) {
    FsSetxattr(r, i, n, static_cast<const char*>(bytes.data), bytes.size, f);
  }>(req, ino, name, RequestBytes{value, size}, flags);
}

void GatedIoctl(fuse_req_t req, fuse_ino_t ino, unsigned command, void* arg,
                fuse_file_info* fi, unsigned flags, const void* in,
                size_t in_size, size_t out_size) {
  Gated<Op::ioctl_,
        [](fuse_req_t r, fuse_ino_t i, unsigned c, uintptr_t a,
           fuse_file_info* f, unsigned fl, RequestBytes bytes, size_t out) {
          FsIoctl(r, i, c, reinterpret_cast<void*>(a), f, fl, bytes.data,
                  bytes.size, out);
        }>(req, ino, command, reinterpret_cast<uintptr_t>(arg), fi, flags,
           RequestBytes{in, in_size}, out_size);
}

}  // namespace

// Operations that release something are never refused: forget, flush, release,
// locks.
const fuse_lowlevel_ops& FileSystem::Operations() {
  static const fuse_lowlevel_ops ops = [] {
    fuse_lowlevel_ops o{};
    o.init = [](void* userdata, fuse_conn_info* conn) {
      static_cast<FileSystem*>(userdata)->NegotiateFeatures(conn);
    };
    o.lookup = Gated<Op::lookup_, FsLookup>;
    o.forget = FsForget;
    o.forget_multi = FsForgetMulti;
    o.getattr = Gated<Op::getattr_, FsGetattr>;
    o.setattr = Gated<Op::setattr_, FsSetattr>;
    o.readlink = Gated<Op::readlink_, FsReadlink>;
    o.mknod = Gated<Op::mknod_, FsMknod>;
    o.mkdir = Gated<Op::mkdir_, FsMkdir>;
    o.unlink = Gated<Op::unlink_, FsUnlink>;
    o.rmdir = Gated<Op::rmdir_, FsRmdir>;
    o.symlink = Gated<Op::symlink_, FsSymlink>;
    o.rename = Gated<Op::rename_, FsRename>;
    o.link = Gated<Op::link_, FsLink>;
    o.open = Gated<Op::open_, FsOpen>;
    o.read = Gated<Op::read_, FsRead>;
    o.write = GatedWrite;
    o.flush = [](fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi) {
      Serve<Op::flush_>(req, FsFlush, ino, fi);
    };
    o.release = FsRelease;
    o.fsync = Gated<Op::fsync_, FsFsync>;
    o.opendir = Gated<Op::opendir_, FsOpendir>;
    o.readdir = Gated<Op::readdir_, FsReaddir>;
    o.readdirplus = Gated<Op::readdir_, FsReaddirplus>;
    o.releasedir = FsReleasedir;
    o.fsyncdir = Gated<Op::fsyncdir_, FsFsyncdir>;
    o.statfs = Gated<Op::statfs_, FsStatfs>;
    o.setxattr = GatedSetxattr;
    o.getxattr = Gated<Op::getxattr_, FsGetxattr>;
    o.listxattr = Gated<Op::listxattr_, FsListxattr>;
    o.removexattr = Gated<Op::removexattr_, FsRemovexattr>;
    o.access = Gated<Op::access_, FsAccess>;
    o.create = Gated<Op::create_, FsCreate>;
#if TRACEFS_FUSE_AT_LEAST(15)
    o.tmpfile = Gated<Op::tmpfile_, FsTmpfile>;
#endif
    o.getlk = FsGetlk;
    o.setlk = FsSetlk;
    o.flock = FsFlock;
    o.ioctl = GatedIoctl;
    o.poll = Gated<Op::poll_, FsPoll>;
    o.fallocate = Gated<Op::fallocate_, FsFallocate>;
    o.copy_file_range = Gated<Op::copy_file_range_, FsCopyFileRange>;
    o.lseek = Gated<Op::lseek_, FsLseek>;
#if TRACEFS_FUSE_AT_LEAST(18)
    o.statx = Gated<Op::statx_, FsStatx>;
#endif
    return o;
  }();
  return ops;
}

}  // namespace tracefs
