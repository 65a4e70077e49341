#include "tracefs/recv/stored_trace.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "tracefs/base/file_io.h"
#include "tracefs/base/ownership.h"
#include "tracefs/recv/kept_rest.h"

namespace tracefs {
namespace {

// Frames this near to the end may never have reached the disk when a machine
// went down; all before were acknowledged, and so are durable.
constexpr uint64_t kDoubtedTraceBytes = uint64_t{256} << 20;

KnownEnd Looks(const struct stat& st) {
  return {.device = st.st_dev,
          .inode = st.st_ino,
          .size = static_cast<uint64_t>(st.st_size),
          .mtime_ns = st.st_mtim.tv_sec * 1'000'000'000 + st.st_mtim.tv_nsec};
}

bool IsAsItWas(const struct stat& st, const KnownEnd& known) {
  const KnownEnd now = Looks(st);
  return now.device == known.device && now.inode == known.inode &&
         now.size == known.size && now.mtime_ns == known.mtime_ns;
}

}  // namespace

Status StoredTrace::Quote(int error) const {
  return Status::System(error, what_);
}

Status StoredTrace::Begin(const KnownEnd* known) {
  fd_.Reset(::openat(directory_, name_.c_str(),
                     O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  scanned_ = !fd_.valid();
  if (!fd_) return errno == ENOENT ? Status::Ok() : Quote(errno);
  struct stat st;
  if (::fstat(fd_.get(), &st) != 0) return Quote(errno);
  // The directory is ours; it need not always have been.
  if (Status s = CheckOwnership(fd_.get(), {.one_name = true}, what_);
      !s.ok()) {
    return s;
  }
  size_ = static_cast<uint64_t>(st.st_size);
  std::string there(std::min<uint64_t>(preamble_.size(), size_), '\0');
  if (!ReadAllAt(fd_.get(),
                 {reinterpret_cast<std::byte*>(there.data()), there.size()},
                 0)) {
    return Quote(EIO);
  }
  if (there != preamble_.substr(0, there.size())) {
    return Status::Invalid("'" + name_ +
                           "' holds another trace with the same serial");
  }
  end_ = written_ = preamble_.size();
  if (there.size() < preamble_.size()) {
    // Made, and no more.
    if (Status s = WriteAllAt(fd_.get(), AsBytes(preamble_), 0, what_);
        !s.ok()) {
      return s;
    }
    scanned_ = true;
    return Status::Ok();
  }
  if (known != nullptr && known->at >= end_ && known->at <= size_ &&
      IsAsItWas(st, *known)) {
    end_ = written_ = known->at;
    next_ = known->next;
  }
  scanned_ = end_ == size_;
  if (!scanned_) scan_.emplace(fd_.get(), end_, size_, serial_, next_);
  return Status::Ok();
}

Status StoredTrace::ScanUntil(std::chrono::steady_clock::time_point time) {
  while (!scanned_) {
    const auto step =
        scan_->Next(/*check_payload=*/scan_->left() <= kDoubtedTraceBytes);
    if (!step.ok()) return Quote(EIO);
    if (*step != format::FrameScan::Step::kFrame) return EndScan(*step);
    end_ = written_ = scan_->at();
    next_ = scan_->next();
    scanned_ = end_ == size_;
    if (std::chrono::steady_clock::now() >= time) break;
  }
  if (scanned_) scan_.reset();
  return Status::Ok();
}

KnownEnd StoredTrace::Known() const {
  const std::lock_guard lock(mu_);
  KnownEnd known;
  struct stat st;
  if (!fd_ || failed_ != 0 || ::fstat(fd_.get(), &st) != 0) return known;
  known = Looks(st);
  known.at = end_;
  known.next = next_;
  return known;
}

Status StoredTrace::EndScan(format::FrameScan::Step why) {
  bool damaged = why == format::FrameScan::Step::kDamaged;
  if (!damaged) {
    // A length that is wrong reaches beyond the end as one that was cut does.
    const auto more = scan_->Skip();
    if (!more.ok()) return Quote(EIO);
    damaged = *more;
  }
  if (damaged) {
    if (Status s = KeepRest(directory_, name_, fd_.get(), end_, size_);
        !s.ok()) {
      return s;
    }
  }
  if (::ftruncate(fd_.get(), static_cast<off_t>(end_)) != 0) {
    return Quote(errno);
  }
  scanned_ = true;
  scan_.reset();
  return Status::Ok();
}

Status StoredTrace::Append(ByteSpan bytes, size_t whole, uint64_t next) {
  const std::lock_guard lock(mu_);
  if (failed_ != 0) return Quote(failed_);
  if (!fd_) {
    fd_.Reset(::openat(directory_, name_.c_str(),
                       O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                       0600));
    if (!fd_) return Quote(errno);
    if (Status s = WriteAllAt(fd_.get(), AsBytes(preamble_), 0, what_);
        !s.ok()) {
      return s;
    }
    end_ = written_ = synced_end_ = preamble_.size();
    // Before any of it is acknowledged.
    if (::fsync(directory_) != 0) return Quote(errno);
  }
  if (Status s = WriteAllAt(fd_.get(), bytes, written_, what_); !s.ok()) {
    return s;
  }
  if (whole != 0) {
    end_ = written_ + whole;
    next_ = next;
  }
  written_ += bytes.size();
  return Status::Ok();
}

void StoredTrace::Abandon() {
  const std::lock_guard lock(mu_);
  if (!fd_) return;
  // Also where a write failed half way.
  (void)!::ftruncate(fd_.get(), static_cast<off_t>(end_));
  written_ = end_;
  // No whole frame was ever sent.
  if (end_ <= preamble_.size()) ::unlinkat(directory_, name_.c_str(), 0);
}

Status StoredTrace::Sync() {
  std::unique_lock lock(mu_);
  if (!fd_.valid()) return Status::Ok();
  if (failed_ != 0) return Quote(failed_);
  const uint64_t end = end_;
  const uint64_t next = next_;
  lock.unlock();
  const int error = ::fdatasync(fd_.get()) == 0 ? 0 : errno;
  lock.lock();
  if (error == 0) {
    synced_end_ = std::max(synced_end_, end);
    synced_next_ = std::max(synced_next_, next);
    return Status::Ok();
  }
  // The kernel tells of it once, and takes for written what was not.
  failed_ = error;
  if (synced_end_ != 0) {
    (void)!::ftruncate(fd_.get(), static_cast<off_t>(synced_end_));
    end_ = written_ = synced_end_;
    next_ = synced_next_;
  } else {
    // Of what was found any may be acknowledged: who opens it next reads what
    // the disk has.
    (void)::posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_DONTNEED);
  }
  return Quote(error);
}

}  // namespace tracefs
