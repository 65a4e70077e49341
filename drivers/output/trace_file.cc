#include "drivers/output/trace_file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "tracefs/base/writer_lock.h"

namespace tracefs {
namespace {

// Space is taken in steps ahead of the end, so that a disk that fills up still
// has room for what says so: LOSS and FINAL.
constexpr uint64_t kReserveStep = 1 << 20;
constexpr uint64_t kFileFinalReserve = 64 * 1024;
constexpr size_t kMaxPieces = 6;

}  // namespace

TraceFile::TraceFile(UniqueFd fd, std::string name)
    : fd_(std::move(fd)), name_(std::move(name)) {
  // Without it a reader only knows less.
  static_cast<void>(LockAsWriter(fd_.get()));
  struct stat st {};
  sequential_ = ::fstat(fd_.get(), &st) == 0 && !S_ISREG(st.st_mode) &&
                !S_ISBLK(st.st_mode);
  can_reserve_ = !sequential_;
  rlimit limit;
  if (S_ISREG(st.st_mode) && ::getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
      limit.rlim_cur != RLIM_INFINITY) {
    most_ = limit.rlim_cur;
  }
}

Status TraceFile::Resume(uint64_t bytes) {
  // The writer before may still have had it when this one was opened.
  static_cast<void>(LockAsWriter(fd_.get()));
  if (::ftruncate(fd_.get(), static_cast<off_t>(bytes)) != 0) {
    return Status::System(errno, name_);
  }
  end_ = reserved_ = bytes;
  return Status::Ok();
}

bool TraceFile::Reserve(uint64_t more) {
  const uint64_t size = end_ + more;
  if (!can_reserve_ || size + kFileFinalReserve <= reserved_) return true;
  const uint64_t upto = size + kFileFinalReserve + kReserveStep;
  if (Allocate(upto)) return true;
  // Not a whole step is left: take exactly what is needed.
  return Allocate(size + kFileFinalReserve);
}

bool TraceFile::Allocate(uint64_t upto) {
  // Room beyond the size could be had, but not used.
  if (upto > most_) return false;
  int rc;
  do {
    rc = ::fallocate(fd_.get(), FALLOC_FL_KEEP_SIZE,
                     static_cast<off_t>(reserved_),
                     static_cast<off_t>(upto - reserved_));
  } while (rc != 0 && errno == EINTR);
  if (rc == 0) {
    reserved_ = upto;
    return true;
  }
  if (errno == EOPNOTSUPP || errno == ENOSYS) {
    can_reserve_ = false;
    return true;
  }
  return false;
}

Status TraceFile::AppendAndEnd(std::initializer_list<ByteSpan> pieces,
                               ByteSpan terminator) {
  std::array<iovec, kMaxPieces> iov;
  size_t count = 0;
  uint64_t left = 0;
  const auto add = [&](ByteSpan piece) {
    if (piece.empty() || count == iov.size()) return;
    iov[count++] = {const_cast<std::byte*>(piece.data()), piece.size()};
    left += piece.size();
  };
  for (const ByteSpan piece : pieces) add(piece);
  const uint64_t frame = left;
  add(terminator);

  uint64_t at = end_;
  iovec* next = iov.data();
  while (left != 0) {
    const int pieces_left = static_cast<int>(iov.data() + count - next);
    const ssize_t n = sequential_ ? ::writev(fd_.get(), next, pieces_left)
                                  : ::pwritev(fd_.get(), next, pieces_left,
                                              static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const Status failed = Status::System(n < 0 ? errno : ENOSPC, name_);
      // What was written of the frame goes, so that the file ends well.
      if (at != end_ && !sequential_) {
        static_cast<void>(!::ftruncate(fd_.get(), static_cast<off_t>(end_)));
        reserved_ = std::min(reserved_, end_);
      }
      return failed;
    }
    at += static_cast<uint64_t>(n);
    left -= static_cast<uint64_t>(n);
    auto taken = static_cast<size_t>(n);
    while (taken != 0) {
      const size_t part = std::min(taken, next->iov_len);
      next->iov_base = static_cast<std::byte*>(next->iov_base) + part;
      next->iov_len -= part;
      taken -= part;
      if (next->iov_len == 0) ++next;
    }
  }
  end_ += frame;
  return Status::Ok();
}

Status TraceFile::Close(bool durable) {
  Status status;
  struct stat st;
  const bool regular = ::fstat(fd_.get(), &st) == 0 && S_ISREG(st.st_mode);
  // Gives back what was reserved.
  if (regular && ::ftruncate(fd_.get(), static_cast<off_t>(end_)) != 0) {
    status = Status::System(errno, name_);
  }
  // A device without seeking has nothing to sync.
  if (durable && ::fdatasync(fd_.get()) != 0 && status.ok() &&
      !(sequential_ && errno == EINVAL)) {
    status = Status::System(errno, name_);
  }
  // Delayed errors (quota, network file systems) show only here.
  if (::close(fd_.Release()) != 0 && errno != EINTR && status.ok()) {
    status = Status::System(errno, name_);
  }
  return status;
}

}  // namespace tracefs
