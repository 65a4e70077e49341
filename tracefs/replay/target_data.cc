// TargetTree: bytes, locks, extended attributes.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "tracefs/base/crc32c.h"
#include "tracefs/replay/open_beneath.h"
#include "tracefs/replay/target_tree.h"

namespace tracefs::replay {
namespace {

constexpr uint64_t kMostBytes = size_t{64} << 20;  // of one call
constexpr uint32_t kTakesNoRoom =
    FALLOC_FL_PUNCH_HOLE | FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_INSERT_RANGE;

// O_DIRECT refuses what is not aligned: that goes through the cache.
template <typename Call>
ssize_t Transfer(int fd, bool direct, const Action& a, Call&& call) {
  const bool aligned = a.offset % kAlignment == 0 && a.length % kAlignment == 0;
  if (!direct || aligned) return call();
  const int flags = ::fcntl(fd, F_GETFL);
  if ((flags & O_DIRECT) == 0) return call();
  ::fcntl(fd, F_SETFL, flags & ~O_DIRECT);
  const ssize_t n = call();
  const int error = errno;
  ::fcntl(fd, F_SETFL, flags);
  errno = error;
  return n;
}

}  // namespace

ByteSpan TargetTree::DataOf(const Action& a, WorkerState& worker) const {
  if (options_.data == DataMode::kRecorded && a.Has(kHasData)) {
    if (!options_.direct) return a.data;
    std::byte* const room = worker.Room(a.data.size());
    std::copy(a.data.begin(), a.data.end(), room);
    return {room, a.data.size()};
  }
  const size_t size = static_cast<size_t>(std::min(a.length, kMostBytes));
  std::byte* const room = worker.Room(size);
  switch (options_.data) {
    case DataMode::kZero:
      std::memset(room, 0, size);
      break;
    case DataMode::kPattern:
      // Each eight bytes say where in the file they are.
      for (size_t i = 0; i < size; i += 8) {
        const uint64_t word = a.offset + i;
        std::memcpy(room + i, &word, std::min<size_t>(8, size - i));
      }
      break;
    default: {
      uint64_t x = (a.Has(kHasHash) ? a.hash : a.offset) * 2 + 1;
      std::memset(room, 0, size);
      for (size_t i = 0; i < size; i += 16) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        std::memcpy(room + i, &x, std::min<size_t>(8, size - i));
      }
    }
  }
  return {room, size};
}

// How many of `length` bytes are to be written, or copied.
uint64_t TargetTree::MostOf(const Action& a, uint64_t length) const {
  if (!options_.only_what_was_done) return length;
  return std::min(length,
                  static_cast<uint64_t>(std::max<int64_t>(a.result, 0)));
}

void TargetTree::Read(const Action& a, WorkerState& worker, Done* done) {
  const int fd = HandleFd(a.handle);
  const size_t size = static_cast<size_t>(std::min(a.length, kMostBytes));
  std::byte* const room = worker.Room(size);
  const ssize_t n = Transfer(fd, options_.direct, a, [&] {
    return ::pread(fd, room, size, static_cast<off_t>(a.offset));
  });
  Set(done, n);
  if (n >= 0 && a.Has(kHasHash)) {
    done->hash = Crc32c(ByteSpan(room, static_cast<size_t>(n)));
  }
}

void TargetTree::Write(const Action& a, WorkerState& worker, Done* done) {
  const int fd = HandleFd(a.handle);
  ByteSpan data = DataOf(a, worker);
  data = data.first(MostOf(a, data.size()));
  if (!TakeBytes(data.size())) return Set(done, -1);
  Set(done, Transfer(fd, options_.direct, a, [&] {
        return ::pwrite(fd, data.data(), data.size(),
                        static_cast<off_t>(a.offset));
      }));
}

void TargetTree::Copy(const Action& a, WorkerState& worker, Done* done) {
  // Programs that copy ask for more than there is.
  const auto most =
      static_cast<uint64_t>(std::max<int64_t>(a.error == 0 ? a.result : 0, 0));
  if (!TakeBytes(std::min(a.length, most))) return Set(done, -1);
  const int source = HandleFd(a.handle);
  auto from = static_cast<off64_t>(a.offset);
  auto to = static_cast<off64_t>(a.offset_out);
  Set(done, ::copy_file_range(source, &from, HandleFd(a.handle_out), &to,
                              MostOf(a, a.length), 0));
  if (done->result > 0 && a.Has(kHasHash)) {
    done->hash =
        HashOf(source, a.offset, static_cast<uint64_t>(done->result), worker);
  }
}

// CRC-32C of what is there, as far as it reaches.
uint32_t TargetTree::HashOf(int fd, uint64_t begin, uint64_t count,
                            WorkerState& worker) {
  constexpr uint64_t kPiece = uint64_t{1} << 20;
  std::byte* const room = worker.Room(std::min(count, kPiece));
  uint32_t crc = 0;
  while (count > 0) {
    const ssize_t n =
        ::pread(fd, room, std::min(count, kPiece), static_cast<off_t>(begin));
    if (n <= 0) break;
    crc = Crc32c(ByteSpan(room, static_cast<size_t>(n)), crc);
    begin += static_cast<uint64_t>(n);
    count -= static_cast<uint64_t>(n);
  }
  return crc;
}

void TargetTree::Readdir(const Action& a, WorkerState& worker, Done* done) {
  const int fd = HandleFd(a.handle);
  // Positions are each file system's own: only the begin is known.
  if (a.offset == 0) ::lseek(fd, 0, SEEK_SET);
  const size_t size = static_cast<size_t>(
      std::clamp<uint64_t>(a.length, 4096, size_t{1} << 20));
  Set(done, ::syscall(SYS_getdents64, fd, worker.Room(size), size));
}

void TargetTree::Xattr(const Action& a, WorkerState& worker, Done* done) {
  int fd = -1;
  UniqueFd owned;
  if (a.place == Place::kName) {
    owned.Reset(OpenBeneath(DirFd(a.dir), a.name, O_PATH | O_NOFOLLOW));
    fd = owned.get();
    if (fd < 0) return Set(done, -1);
  } else {
    fd = a.place == Place::kDir ? DirFd(a.dir) : HandleFd(a.handle);
    if (fd < 0) {
      errno = EBADF;
      return Set(done, -1);
    }
  }
  const std::string path = FdPath(fd);
  const std::string name(a.text);
  const size_t size = static_cast<size_t>(std::min<uint64_t>(a.length, 65536));
  const bool sets = a.op == Op::setxattr_;
  const ByteSpan value = sets && !a.Has(kHasData) ? DataOf(a, worker) : a.data;
  const auto takes = LeavesOutXattr(name, sets ? value : ByteSpan());
  if ((sets || a.op == Op::removexattr_) && takes) {
    done->skipped = true;
    if (a.error != 0) return;
    left_out_.Add(*takes);
    done->left_out = takes;
    return;
  }
  if (a.op == Op::setxattr_) {
    return Set(done, ::setxattr(path.c_str(), name.c_str(), value.data(),
                                std::min(value.size(), size_t{65536}),
                                static_cast<int>(a.arg_flags & 3)));
  }
  if (a.op == Op::getxattr_) {
    return Set(done,
               ::getxattr(path.c_str(), name.c_str(), worker.Room(size), size));
  }
  if (a.op == Op::listxattr_) {
    return Set(done,
               ::listxattr(path.c_str(),
                           reinterpret_cast<char*>(worker.Room(size)), size));
  }
  Set(done, ::removexattr(path.c_str(), name.c_str()));
}

// Locks of fcntl(2) are those of an owner, of which a replay has many: each has
// an open file description of its own for every file that it locks. No lock
// waits: an operation that waited comes, in the plan, after the one that
// blocked it.
void TargetTree::SetLock(const Action& a, Done* done) {
  const int fd = HandleFd(a.handle);
  if (a.op == Op::flock_) {
    const int kind = a.lock_type == F_UNLCK   ? LOCK_UN
                     : a.lock_type == F_WRLCK ? LOCK_EX
                                              : LOCK_SH;
    return Set(done, ::flock(fd, kind | LOCK_NB));
  }
  const uint64_t key = a.lock_owner * 0x9e3779b97f4a7c15 + a.rdev;
  const std::lock_guard lock(lock_mutex_);
  if (a.op == Op::flush_) {
    lock_fds_.erase(key);
    return;
  }
  UniqueFd& holder = lock_fds_[key];
  if (!holder) {
    const std::string path = FdPath(fd);
    for (const int mode : {O_RDWR, O_RDONLY, O_WRONLY}) {
      if (!holder) holder.Reset(::open(path.c_str(), mode | O_CLOEXEC));
    }
    if (!holder) return Set(done, -1);
  }
  struct flock range {};
  range.l_type = static_cast<short>(a.lock_type == F_UNLCK   ? F_UNLCK
                                    : a.lock_type == F_WRLCK ? F_WRLCK
                                                             : F_RDLCK);
  range.l_whence = SEEK_SET;
  range.l_start = static_cast<off_t>(a.offset);
  range.l_len = static_cast<off_t>(a.length);
  Set(done, ::fcntl(holder.get(), F_OFD_SETLK, &range));
}

void TargetTree::SyncOrSeek(const Action& a, Done* done) {
  const int fd = HandleFd(a.handle);
  if (a.op == Op::fallocate_) {
    // What becomes a hole, or is moved, takes no room.
    const bool takes_room = (a.arg_flags & kTakesNoRoom) == 0;
    if (takes_room && a.error != 0 && !HasRoomFor(a.length)) {
      // It has failed, mostly for want of room, and does so here.
      done->result = -1;
      done->error = static_cast<int>(a.error);
      return;
    }
    if (takes_room && !TakeBytes(a.length)) return Set(done, -1);
    return Set(done, ::fallocate(fd, static_cast<int>(a.arg_flags),
                                 static_cast<off_t>(a.offset),
                                 static_cast<off_t>(a.length)));
  }
  if (a.op == Op::lseek_) {
    return Set(done, ::lseek(fd, static_cast<off_t>(a.offset),
                             static_cast<int>(a.arg_flags)));
  }
  Set(done, (a.arg_flags & 1) != 0 ? ::fdatasync(fd) : ::fsync(fd));
}

}  // namespace tracefs::replay
