#include "tracefs/recv/stored_trace.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "tracefs/base/file_io.h"
#include "tracefs/base/ownership.h"

namespace tracefs {
namespace {

// Frames this near to the end may never have reached the disk when a machine
// went down; all before were acknowledged, and so are durable.
constexpr uint64_t kDoubtedTraceBytes = uint64_t{256} << 20;
constexpr int kMaxRests = 100;

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
  KnownEnd known;
  struct stat st;
  if (!fd_ || ::fstat(fd_.get(), &st) != 0) return known;
  known = Looks(st);
  known.at = end_;
  known.next = next_;
  return known;
}

Status StoredTrace::EndScan(format::FrameScan::Step why) {
  if (why == format::FrameScan::Step::kDamaged) {
    if (Status s = KeepRest(end_, size_); !s.ok()) return s;
  }
  if (::ftruncate(fd_.get(), static_cast<off_t>(end_)) != 0) {
    return Quote(errno);
  }
  scanned_ = true;
  scan_.reset();
  return Status::Ok();
}

// Nothing that was received is thrown away without a trace.
Status StoredTrace::KeepRest(uint64_t from, uint64_t to) const {
  for (int number = 1; number <= kMaxRests; ++number) {
    const std::string name = name_ + ".rest-" + std::to_string(number);
    const UniqueFd rest(::openat(directory_, name.c_str(),
                                 O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                                 0600));
    if (!rest && errno == EEXIST) continue;
    if (!rest) return Quote(errno);
    std::vector<std::byte> piece(size_t{1} << 20);
    for (uint64_t at = from; at < to;) {
      const auto n = std::min<uint64_t>(piece.size(), to - at);
      const std::span<std::byte> part(piece.data(), n);
      if (!ReadAllAt(fd_.get(), part, at)) return Quote(EIO);
      if (Status s = WriteAllAt(rest.get(), part, at - from, what_); !s.ok()) {
        return s;
      }
      at += n;
    }
    if (::fsync(rest.get()) != 0 || ::fsync(directory_) != 0) {
      return Quote(errno);
    }
    std::fprintf(stderr,
                 "tracefs-recv: '%s' is damaged from byte %llu on: what "
                 "follows is now in '%s'\n",
                 name_.c_str(), static_cast<unsigned long long>(from),
                 name.c_str());
    return Status::Ok();
  }
  return Status::Invalid("there are too many files '" + name_ + ".rest-…'");
}

Status StoredTrace::Append(ByteSpan bytes, size_t whole, uint64_t next) {
  if (!fd_) {
    fd_.Reset(::openat(directory_, name_.c_str(),
                       O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                       0600));
    if (!fd_) return Quote(errno);
    if (Status s = WriteAllAt(fd_.get(), AsBytes(preamble_), 0, what_);
        !s.ok()) {
      return s;
    }
    end_ = written_ = preamble_.size();
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
  if (!fd_) return;
  // Also where a write failed half way.
  (void)!::ftruncate(fd_.get(), static_cast<off_t>(end_));
  written_ = end_;
  // No whole frame was ever sent.
  if (end_ <= preamble_.size()) ::unlinkat(directory_, name_.c_str(), 0);
}

Status StoredTrace::Sync() const {
  if (fd_.valid() && ::fdatasync(fd_.get()) != 0) return Quote(errno);
  return Status::Ok();
}

}  // namespace tracefs
