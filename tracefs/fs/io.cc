// read, write, fallocate, lseek, copy_file_range, poll, ioctl.
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "tracefs/base/clock.h"
#include "tracefs/fs/callers_rights.h"
#include "tracefs/fs/extents.h"
#include "tracefs/fs/hand_over.h"
#include "tracefs/fs/io_buffer.h"
#include "tracefs/fs/keep_before.h"
#include "tracefs/fs/op_scope.h"
#include "tracefs/fs/operations.h"

namespace tracefs {
namespace {

ByteSpan Bytes(const char* data, size_t size) {
  return {reinterpret_cast<const std::byte*>(data), size};
}

// The part of a file that a request is about.
void Range(OpScope& op, const Handle& handle, uint64_t offset,
           uint64_t length) {
  op.About(handle.inode);
  op.Through(handle);
  op.Set(Field::kOffset, offset);
  op.Set(Field::kLength, length);
}

// libfuse passes write data on from wherever it received it; a write with
// O_DIRECT needs whole sectors.
const char* Aligned(const Handle& handle, const fuse_file_info& fi,
                    const char* data, size_t size) {
  constexpr uintptr_t kSector = 512;
  if ((handle.flags & fi.flags & O_DIRECT) == 0 || fi.writepage != 0 ||
      reinterpret_cast<uintptr_t>(data) % kSector == 0) {
    return data;
  }
  char* copy = IoBuffer(size);
  if (copy != nullptr) std::memcpy(copy, data, size);
  return copy;
}

// Where a read of `size` bytes puts them; null when there is no memory. Over
// io_uring that is the memory from which the kernel takes the bytes.
char* ReadBuffer([[maybe_unused]] fuse_req_t req, size_t size) {
#if TRACEFS_FUSE_AT_LEAST(18)
  // In the pool, the request may be answered and its memory reused before the
  // read has ended.
  char* payload = nullptr;
  size_t capacity = 0;
  if (HandedRequest::Current() == nullptr &&
      fuse_req_get_payload(req, &payload, &capacity, nullptr) == 0 &&
      capacity >= size) {
    return payload;
  }
#endif
  return IoBuffer(size);
}

// Reads what is there without waiting for the store: `size` or what is left of
// the file; -1 and EAGAIN if that is impossible or unknown.
ssize_t ReadNow(const Handle& handle, int fd, char* buffer, size_t size,
                off_t offset) {
  errno = EAGAIN;
  // It waits for the disk, whatever flags say.
  if (handle.reads_from_disk()) return -1;
  size_t got = 0;
  while (got < size) {
    const iovec iov = {buffer + got, size - got};
    const ssize_t n =
        ::preadv2(fd, &iov, 1, offset + static_cast<off_t>(got), RWF_NOWAIT);
    if (n == 0) break;
    if (n < 0) {
      if (errno == EOPNOTSUPP) errno = EAGAIN;
      return -1;
    }
    got += static_cast<size_t>(n);
  }
  return static_cast<ssize_t>(got);
}

// How many of the bytes stand where a daemon before this one may have appended
// them. A write that SIGKILL interrupts ends early (linux/mm/filemap.c,
// generic_perform_write), so it may be any number from the first one on.
size_t Appended(int fd, const iovec& iov) {
  constexpr size_t kPiece = 64 * 1024;
  // The size before, and 1: it was noted.
  const uint64_t noted = survive::NotedBefore();
  if (noted == 0) return 0;
  const auto at = static_cast<off_t>(noted - 1);
  const auto* const data = static_cast<const char*>(iov.iov_base);
  std::vector<char> there(std::min(iov.iov_len, kPiece));
  const UniqueFd reading(::open(("/proc/self/fd/" + std::to_string(fd)).c_str(),
                                O_RDONLY | O_CLOEXEC));
  size_t done = 0;
  while (done < iov.iov_len) {
    const size_t most = std::min(there.size(), iov.iov_len - done);
    const ssize_t n = ::pread(reading.get(), there.data(), most,
                              at + static_cast<off_t>(done));
    if (n <= 0) break;
    // It ends with other bytes: they are not this request's.
    if (std::memcmp(there.data(), data + done, static_cast<size_t>(n)) != 0) {
      return 0;
    }
    done += static_cast<size_t>(n);
  }
  return done;
}

// What this write has to wait for and its descriptor does not ask for, as flags
// of pwritev2(2): the kernel tells it in the flags of the file (RWF_DSYNC,
// RWF_SYNC, a mount remounted with sync; linux/fs/fuse/file.c,
// fuse_write_flags).
int SyncOf(const Handle& handle, const fuse_file_info& fi) {
  constexpr int kAttributesToo = O_SYNC & ~O_DSYNC;
  const int more = fi.flags & ~handle.flags;
  if ((more & kAttributesToo) != 0) return RWF_SYNC;
  return (more & O_DSYNC) != 0 ? RWF_DSYNC : 0;
}

// `flags`: of pwritev2(2). What was appended is not appended again for the same
// request.
ssize_t WriteOnce(int fd, const iovec& iov, off_t offset, int flags) {
  const bool append = (flags & RWF_APPEND) != 0;
  const int64_t result = survive::Once([&](bool again) -> int64_t {
    iovec left = iov;
    if (append && again) {
      survive::NoteDoubt();
      const size_t there = Appended(fd, iov);
      left.iov_base = static_cast<char*>(iov.iov_base) + there;
      left.iov_len -= there;
      if (left.iov_len == 0) {
        const bool synced = flags == RWF_APPEND || ::fsync(fd) == 0;
        return synced ? static_cast<int64_t>(there) : -errno;
      }
    }
    struct stat st;
    if (append && left.iov_len == iov.iov_len &&
        survive::Area::OfThread() != nullptr && ::fstat(fd, &st) == 0) {
      survive::NoteBefore(static_cast<uint64_t>(st.st_size) + 1);
    }
    const ssize_t n = flags != 0
                          ? ::pwritev2(fd, &left, 1, offset, flags)
                          : ::pwrite(fd, left.iov_base, left.iov_len, offset);
    const size_t before = iov.iov_len - left.iov_len;
    if (n < 0) return before != 0 ? static_cast<int64_t>(before) : -errno;
    return static_cast<int64_t>(before) + n;
  });
  if (result >= 0) return static_cast<ssize_t>(result);
  errno = static_cast<int>(-result);
  return -1;
}

// Writes pages that come back from the cache, except for bytes written past it
// since they were read. `size`, or -1 and errno. The kernel sends them through
// any handle that is open for writing, and the process that stored to them does
// not learn if they are refused: hence a descriptor that takes any byte
// anywhere.
ssize_t WritePages(FileSystem& fs, const Handle& handle, const char* data,
                   size_t size, off_t offset) {
  UniqueFd other;
  if (handle.append_only) {
    // It would append them. They were mapped before it became append-only.
    other = fs.handles().WriterOf(handle.inode);
    if (!other) {
      errno = EPERM;
      return -1;
    }
  }
  const int fd = other ? other.get() : handle.BufferedFd(fs);
  PageOrder* const order = handle.inode.page_order();
  if (order == nullptr) return ::pwrite(fd, data, size, offset);
  const auto begin = static_cast<uint64_t>(offset);
  const std::unique_lock lock(order->stores());
  const bool all = order->ForEachPart(
      begin, size, MonotonicNs(), [&](uint64_t at, uint64_t bytes) {
        while (bytes > 0) {
          const ssize_t n =
              ::pwrite(fd, data + (at - begin), bytes, static_cast<off_t>(at));
          if (n <= 0) {
            if (n == 0) errno = EIO;
            return false;
          }
          at += static_cast<uint64_t>(n);
          bytes -= static_cast<uint64_t>(n);
        }
        return true;
      });
  return all ? static_cast<ssize_t>(size) : -1;
}

// Whether its file system has only memory as its store. Those do not know
// RWF_NOWAIT.
bool LiesInMemory(int fd) {
  struct statfs store;
  return ::fstatfs(fd, &store) == 0 &&
         (store.f_type == TMPFS_MAGIC || store.f_type == RAMFS_MAGIC);
}

// The bytes of a copy bypass this process: they are read from the source again
// if some tracer keeps data and all of them are in memory, so that the reply
// waits for no store. Before the reply, so that only concurrent writes can make
// a difference (and, where times give the order, none can).
void KeepCopied(OpScope& op, const Handle& source, uint64_t offset,
                size_t size) {
  constexpr size_t kMostBytes = size_t{1} << 20;  // of a read
  char* const buffer = size <= kMostBytes && !source.inode.is_output()
                           ? IoBuffer(size)
                           : nullptr;
  const int fd = buffer != nullptr ? source.Fd(op.fs()) : -1;
  const auto at = static_cast<off_t>(offset);
  ssize_t n = -1;
  if (buffer != nullptr) {
    n = ReadNow(source, fd, buffer, size, at);
    if (n < 0 && LiesInMemory(fd)) n = ::pread(fd, buffer, size, at);
  }
  if (n == static_cast<ssize_t>(size)) {
    op.Data(Bytes(buffer, size));
  } else {
    op.Set(Field::kDataLeftOut, 1);
  }
}

// `cached`: what was known of the pages before it was handed over.
void Read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
          fuse_file_info* fi, int64_t cached) {
  OpScope op(req, Op::read_);
  const Handle& handle = HandleOf(fi);
  Range(op, handle, static_cast<uint64_t>(offset), size);
  op.Set(Field::kFlags, static_cast<uint32_t>(fi->flags));
  // A read(2) that bypasses the page cache carries a lock owner; reads that
  // fill the cache do not (linux/fs/fuse/file.c, fuse_send_read).
  if (handle.io_mode != IoMode::kCached) {
    op.Set(Field::kMapped, fi->lock_owner == 0 ? 1 : 0);
  }
  op.InferCaller(handle);
  op.Begin();
  op.LooksAtFile(handle.inode);
  if (handle.reads_from_disk()) op.ToDisk();
  const bool may_wait =
      !op.fs().MayNotWait(req, Op::read_, handle.reads_from_disk());
  char* const buffer = ReadBuffer(req, size);
  if (buffer == nullptr) return op.ReplyError(ENOMEM);
  if (fi->lock_owner == 0 && handle.inode.expects_cached_stores()) {
    handle.inode.MakePageOrder().NotePagesRead(static_cast<uint64_t>(offset),
                                               size);
  }
  const int fd = handle.FdFor(op.fs(), fi->flags);
  ExtentsOfRead extents(op, handle, cached);
  extents.Look(fd, static_cast<uint64_t>(offset), size);
  ssize_t n = may_wait ? ::pread(fd, buffer, size, offset)
                       : ReadNow(handle, fd, buffer, size, offset);
  if (n < 0 && !may_wait && errno == EAGAIN) {
    if (op.HandOverOrMake([req, ino, size, offset, cached = extents.cached(),
                           file = KeptObject<fuse_file_info>(fi)]() mutable {
          Read(req, ino, size, offset, file.get(), cached);
        })) {
      return;
    }
    n = ::pread(fd, buffer, size, offset);
  }
  if (n < 0) return op.ReplyError(errno);
  const auto got = static_cast<size_t>(n);
  // A trace that contained reads of itself would grow by as much.
  if (!handle.inode.is_output()) {
    op.Data(Bytes(buffer, got));
  } else if (op.KeepsData()) {
    op.Set(Field::kDataLeftOut, 1);
  }
  extents.Settle(static_cast<uint64_t>(offset), got);
  op.End(n, 0, [&] { return fuse_reply_buf(req, buffer, got); });
}

// Where what was written lies in the file, or may: of what is appended the
// kernel knows only where the file ended, or ended earlier.
void NotePut(const OpScope& op, const Handle& handle, int fd, uint64_t offset,
             uint64_t put, bool append) {
  uint64_t end = offset + put;
  struct stat st;
  if (append && op.NotesWrites() && ::fstat(fd, &st) == 0) {
    end = std::max(end, static_cast<uint64_t>(st.st_size));
  }
  NoteWritten(op, handle.inode, offset, end);
}

}  // namespace

void FsRead(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
            fuse_file_info* fi) {
  Read(req, ino, size, offset, fi, ExtentsOfRead::kNotAsked);
}

void FsWrite(fuse_req_t req, fuse_ino_t /*ino*/, const char* data, size_t size,
             off_t offset, fuse_file_info* fi) {
  OpScope op(req, Op::write_);
  const Handle& handle = HandleOf(fi);
  Range(op, handle, static_cast<uint64_t>(offset), size);
  op.Set(Field::kFlags, static_cast<uint32_t>(fi->flags));
  op.Set(Field::kMapped, fi->writepage != 0 ? 1 : 0);
  op.Data(Bytes(data, size));
  if (handle.writes_to_disk(fi->flags)) op.ToDisk();
  op.InferCaller(handle);
  op.Begin();
  op.ChangesFile(handle.inode.number());
  // F_SETFL is never sent: each write carries the flags as they are now.
  // What comes from the page cache has its place already.
  const bool append = (fi->flags & O_APPEND) != 0 && fi->writepage == 0;
  KeepBefore keep(op);
  if (const int error =
          append ? 0
                 : keep.Range(handle.inode, static_cast<uint64_t>(offset),
                              static_cast<uint64_t>(offset) + size);
      error != 0) {
    return op.ReplyError(error);
  }
  ssize_t n;
  int fd = -1;
  {
    const fuse_ctx* caller = ContextOf(req);
    // Mapped pages are written back as root, whoever changed them.
    const bool by_nobody =
        fi->writepage != 0 && caller->uid == 0 && !op.fs().asks_as_caller();
    const AsCaller as_caller(by_nobody ? kNobody : caller->uid,
                             by_nobody ? kNobody : caller->gid);
    ThreadCredentials::Current().AllowFsetid(!KillsSetId(*fi));
    const char* const from = Aligned(handle, *fi, data, size);
    const iovec iov = {const_cast<char*>(from), size};
    if (as_caller.error() != 0 || from == nullptr) {
      n = -1;
      errno = from == nullptr ? ENOMEM : as_caller.error();
    } else if (fi->writepage != 0) {
      n = WritePages(op.fs(), handle, from, size, offset);
    } else {
      std::shared_lock<std::shared_mutex> lock;
      if (PageOrder* const order = handle.inode.page_order()) {
        lock = std::shared_lock(order->stores());
      }
      fd = handle.FdFor(op.fs(), fi->flags);
      n = WriteOnce(fd, iov, offset,
                    SyncOf(handle, *fi) | (append ? RWF_APPEND : 0));
      // Asked again: the first page may have been read meanwhile.
      if (PageOrder* const order = handle.inode.page_order();
          order != nullptr && n > 0) {
        order->NoteWritten(static_cast<uint64_t>(offset),
                           static_cast<uint64_t>(n), MonotonicNs());
      }
    }
  }
  if (n < 0) return op.ReplyError(errno);
  keep.Settle(n > 0);
  const auto put = static_cast<size_t>(n);
  NotePut(op, handle, fd, static_cast<uint64_t>(offset), put, append);
  op.End(n, 0, [&] { return fuse_reply_write(req, put); });
}

namespace {

// What fallocate(2) destroys of a file.
int KeepFallocated(KeepBefore& keep, Inode& inode, int mode, uint64_t offset,
                   uint64_t length) {
  constexpr int kMoves = FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_INSERT_RANGE;
  constexpr int kZeroes = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE;
  if ((mode & kMoves) != 0) return keep.Range(inode, offset, UINT64_MAX);
  return keep.Range(inode, offset,
                    (mode & kZeroes) != 0 ? offset + length : offset);
}

}  // namespace

void FsFallocate(fuse_req_t req, fuse_ino_t /*ino*/, int mode, off_t offset,
                 off_t length, fuse_file_info* fi) {
  OpScope op(req, Op::fallocate_);
  const Handle& handle = HandleOf(fi);
  Range(op, handle, static_cast<uint64_t>(offset),
        static_cast<uint64_t>(length));
  op.Set(Field::kFlags, static_cast<uint32_t>(mode));
  op.Begin();
  op.ChangesFile(handle.inode.number());
  KeepBefore keep(op);
  if (const int error = KeepFallocated(keep, handle.inode, mode,
                                       static_cast<uint64_t>(offset),
                                       static_cast<uint64_t>(length));
      error != 0) {
    return op.ReplyError(error);
  }
  const fuse_ctx* caller = ContextOf(req);
  const AsCaller as_caller(caller->uid, caller->gid);
  if (as_caller.error() != 0) return op.ReplyError(as_caller.error());
  const int fd = handle.Fd(op.fs());
  // The kernel does not report set-user-id here either.
  ThreadCredentials::Current().AllowFsetid(IsRootWith(op, kFsetid));
  const int error = ::fallocate(fd, mode, offset, length) == 0 ? 0 : errno;
  keep.Settle(error == 0);
  if (error == 0 && (mode & FALLOC_FL_PUNCH_HOLE) == 0) {
    // What lies after a range that comes or goes is other bytes of the file.
    constexpr int kMoves = FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_INSERT_RANGE;
    const auto begin = static_cast<uint64_t>(offset);
    NoteWritten(op, handle.inode, begin,
                (mode & kMoves) != 0 ? uint64_t{INT64_MAX}
                                     : begin + static_cast<uint64_t>(length));
  }
  op.ReplyError(error);
}

void FsLseek(fuse_req_t req, fuse_ino_t /*ino*/, off_t offset, int whence,
             fuse_file_info* fi) {
  OpScope op(req, Op::lseek_);
  const Handle& handle = HandleOf(fi);
  op.About(handle.inode);
  op.Through(handle);
  op.Set(Field::kOffset, static_cast<uint64_t>(offset));
  op.Set(Field::kFlags, static_cast<uint32_t>(whence));
  op.Begin();
  op.LooksAtFile(handle.inode);
  const off_t found = ::lseek(handle.Fd(op.fs()), offset, whence);
  if (found < 0) return op.ReplyError(errno);
  op.End(found, 0, [&] { return fuse_reply_lseek(req, found); });
}

void FsCopyFileRange(fuse_req_t req, fuse_ino_t /*ino_in*/, off_t offset_in,
                     fuse_file_info* fi_in, fuse_ino_t /*ino_out*/,
                     off_t offset_out, fuse_file_info* fi_out, size_t size,
                     int flags) {
  OpScope op(req, Op::copy_file_range_);
  const Handle& in = HandleOf(fi_in);
  const Handle& out = HandleOf(fi_out);
  const auto begin_in = static_cast<uint64_t>(offset_in);
  const auto begin_out = static_cast<uint64_t>(offset_out);
  Range(op, in, begin_in, size);
  op.Onto(out);
  op.Set(Field::kOffsetOut, begin_out);
  op.Set(Field::kFlags, static_cast<uint32_t>(flags));
  op.Begin();
  op.LooksAndChanges(in.inode, out.inode);
  KeepBefore keep(op);
  if (const int error = keep.Range(out.inode, begin_out, begin_out + size);
      error != 0) {
    return op.ReplyError(error);
  }
  ssize_t n;
  {
    const fuse_ctx* caller = ContextOf(req);
    const AsCaller as_caller(caller->uid, caller->gid);
    // The kernel does not report set-user-id here: let the backing kernel
    // decide as for the caller.
    ThreadCredentials::Current().AllowFsetid(IsRootWith(op, kFsetid));
    n = ::copy_file_range(in.Fd(op.fs()), &offset_in, out.Fd(op.fs()),
                          &offset_out, size, static_cast<unsigned>(flags));
  }
  if (n < 0) return op.ReplyError(errno);
  keep.Settle(n > 0);
  // The kernel thinks of the file that was written only.
  op.fs().ForgetAttributes(in.inode);
  const auto copied = static_cast<size_t>(n);
  NoteWritten(op, out.inode, begin_out, begin_out + copied);
  if (copied != 0 && op.KeepsData()) KeepCopied(op, in, begin_in, copied);
  op.End(n, 0, [&] { return fuse_reply_write(req, copied); });
}

void FsPoll(fuse_req_t req, fuse_ino_t /*ino*/, fuse_file_info* fi,
            fuse_pollhandle* poll_handle) {
  OpScope op(req, Op::poll_);
  const Handle& handle = HandleOf(fi);
  op.About(handle.inode);
  op.Through(handle);
  op.Set(Field::kFlags, fi->poll_events);
  op.Begin();
  // Regular files are always ready: notifications are never needed.
  if (poll_handle != nullptr) fuse_pollhandle_destroy(poll_handle);
  pollfd p = {handle.Fd(op.fs()), static_cast<short>(fi->poll_events), 0};
  if (::poll(&p, 1, 0) < 0) return op.ReplyError(errno);
  const auto ready = static_cast<unsigned>(p.revents);
  op.End(ready, 0, [&] { return fuse_reply_poll(req, ready); });
}

void FsIoctl(fuse_req_t req, fuse_ino_t /*ino*/, unsigned command, void* arg,
             fuse_file_info* fi, unsigned flags, const void* in, size_t in_size,
             size_t out_size) {
  OpScope op(req, Op::ioctl_);
  const Handle& handle = HandleOf(fi);
  op.About(handle.inode);
  op.Through(handle);
  op.Set(Field::kCommand, command);
  op.Set(Field::kLength, in_size > out_size ? in_size : out_size);
  op.Set(Field::kFlags, flags);
  op.Begin();
  // Only these are known to take no pointers and to be checked by the kernel
  // before they come here. The sizes in the numbers of the first three are a
  // historical mistake: they move an int.
  alignas(8) std::array<char, sizeof(fsxattr)> value{};
  size_t in_bytes = 0;
  size_t out_bytes = 0;
  switch (command) {
    case FS_IOC_GETFLAGS:
    case FS_IOC_GETVERSION:
      out_bytes = sizeof(int);
      break;
    case FS_IOC_SETFLAGS:
      in_bytes = sizeof(int);
      break;
    case FS_IOC_FSGETXATTR:
      out_bytes = sizeof(fsxattr);
      break;
    case FS_IOC_FSSETXATTR:
      in_bytes = sizeof(fsxattr);
      break;
    default:
      op.ReplyError(ENOTTY);
      return;
  }
  static_cast<void>(arg);
  if (in_size < in_bytes || out_size < out_bytes) return op.ReplyError(EINVAL);
  if (in_bytes != 0) std::memcpy(value.data(), in, in_bytes);
  const int fd = handle.Fd(op.fs());
  int rc = 0;
  const auto call = [&] { return rc = ::ioctl(fd, command, value.data()); };
  int error = 0;
  if (in_bytes != 0) {
    // FSSETXATTR may clear set-id bits.
    ThreadCredentials::Current().AllowFsetid(IsRootWith(op, kFsetid));
    error = WithCallersRights(op, handle.inode, call);
  } else if (call() < 0) {
    error = errno;
  }
  if (error != 0) return op.ReplyError(error);
  if (in_bytes != 0) {
    op.fs().ForgetAttributes(handle.inode);  // ctime
    handle.inode.SetAppendOnly(true);        // or not: to be asked
  }
  op.End(rc, 0, [&] {
    return fuse_reply_ioctl(req, rc, out_bytes == 0 ? nullptr : value.data(),
                            out_bytes);
  });
}

}  // namespace tracefs
