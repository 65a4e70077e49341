#include "tracefs/recv/stored_trace.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "tracefs/base/crc32c.h"
#include "tracefs/base/ownership.h"

namespace tracefs {
namespace {

// Frames this near to the end may never have reached the disk when a machine
// went down; all before were acknowledged, and so are durable.
constexpr uint64_t kDoubtedBytes = uint64_t{256} << 20;
constexpr int kMaxRests = 100;
// Read at a time: of headers, with what stands between small ones, and of
// payloads.
constexpr size_t kWindowBytes = size_t{16} << 10;
constexpr size_t kPieceBytes = size_t{256} << 10;

bool ReadAll(int fd, std::span<std::byte> out, uint64_t offset) {
  while (!out.empty()) {
    const ssize_t n =
        ::pread(fd, out.data(), out.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    out = out.subspan(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
  return true;
}

int WriteAll(int fd, ByteSpan bytes, uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t n =
        ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : ENOSPC;
    bytes = bytes.subspan(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
  return 0;
}

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
  return Status::System(error, "trace file '" + name_ + "'");
}

Status StoredTrace::Begin(const KnownEnd* known) {
  fd_.Reset(::openat(directory_, name_.c_str(),
                     O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  scanned_ = !fd_.valid();
  if (!fd_) return errno == ENOENT ? Status::Ok() : Quote(errno);
  struct stat st;
  if (::fstat(fd_.get(), &st) != 0) return Quote(errno);
  // The directory is ours; it need not always have been.
  if (Status s = CheckOwnership(fd_.get(), {.one_name = true},
                                "trace file '" + name_ + "'");
      !s.ok()) {
    return s;
  }
  size_ = static_cast<uint64_t>(st.st_size);
  std::string there(std::min<uint64_t>(preamble_.size(), size_), '\0');
  if (!ReadAll(fd_.get(),
               {reinterpret_cast<std::byte*>(there.data()), there.size()}, 0)) {
    return Quote(EIO);
  }
  if (there != preamble_.substr(0, there.size())) {
    return Status::Invalid("'" + name_ +
                           "' holds another trace with the same serial");
  }
  end_ = written_ = preamble_.size();
  if (there.size() < preamble_.size()) {
    // Made, and no more.
    const int error = WriteAll(fd_.get(), AsBytes(preamble_), 0);
    if (error != 0) return Quote(error);
    scanned_ = true;
    return Status::Ok();
  }
  if (known != nullptr && known->at >= end_ && known->at <= size_ &&
      IsAsItWas(st, *known)) {
    end_ = written_ = known->at;
    next_ = known->next;
  }
  scanned_ = end_ == size_;
  return Status::Ok();
}

Status StoredTrace::Find() {
  if (Status s = Begin(nullptr); !s.ok() || scanned_) return s;
  return ScanUntil(std::chrono::steady_clock::time_point::max());
}

Status StoredTrace::ScanUntil(std::chrono::steady_clock::time_point time) {
  while (!scanned_) {
    const Result<Step> step = PassFrame();
    if (!step.ok()) return step.status();
    if (*step != Step::kFrame) return EndScan(*step);
    written_ = end_;
    scanned_ = end_ == size_;
    if (std::chrono::steady_clock::now() >= time) break;
  }
  if (scanned_) window_ = {};
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

Status StoredTrace::ReadHeader(
    std::span<std::byte, format::kFrameHeaderBytes> header) {
  if (end_ < window_at_ || end_ + header.size() > window_at_ + window_.size()) {
    window_.resize(std::min<uint64_t>(kWindowBytes, size_ - end_));
    window_at_ = end_;
    if (!ReadAll(fd_.get(), window_, end_)) return Quote(EIO);
  }
  std::memcpy(header.data(), window_.data() + (end_ - window_at_),
              header.size());
  return Status::Ok();
}

// Goes on with `*crc`.
Status StoredTrace::PayloadCrc(uint64_t at, uint64_t bytes, uint32_t* crc) {
  if (at >= window_at_ && at + bytes <= window_at_ + window_.size()) {
    *crc = Crc32c(ByteSpan(window_).subspan(at - window_at_, bytes), *crc);
    return Status::Ok();
  }
  std::vector<std::byte> piece(std::min<uint64_t>(kPieceBytes, bytes));
  while (bytes != 0) {
    const std::span<std::byte> part(piece.data(),
                                    std::min<uint64_t>(piece.size(), bytes));
    if (!ReadAll(fd_.get(), part, at)) return Quote(EIO);
    *crc = Crc32c(part, *crc);
    at += part.size();
    bytes -= part.size();
  }
  return Status::Ok();
}

Result<StoredTrace::Step> StoredTrace::PassFrame() {
  std::array<std::byte, format::kFrameHeaderBytes> header;
  const uint64_t left = size_ - end_;
  if (left < header.size()) return Step::kCut;
  if (Status s = ReadHeader(header); !s.ok()) return s;
  format::FrameHeader frame;
  if (!format::DecodeFrameHeader(header, &frame) || frame.serial != serial_ ||
      frame.sequence < next_) {
    return Step::kDamaged;
  }
  const uint64_t bytes = header.size() + frame.payload_bytes;
  if (left < bytes) return Step::kCut;
  if (left <= kDoubtedBytes) {
    uint32_t crc = Crc32c(ByteSpan(header).first(header.size() - 4));
    if (Status s = PayloadCrc(end_ + header.size(), frame.payload_bytes, &crc);
        !s.ok()) {
      return s;
    }
    if (crc != frame.crc) return Step::kDamaged;
  }
  end_ += bytes;
  next_ = frame.sequence + 1;
  return Step::kFrame;
}

Status StoredTrace::EndScan(Step why) {
  if (why == Step::kDamaged) {
    if (Status s = KeepRest(end_, size_); !s.ok()) return s;
  }
  if (::ftruncate(fd_.get(), static_cast<off_t>(end_)) != 0) {
    return Quote(errno);
  }
  scanned_ = true;
  window_ = {};
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
      if (!ReadAll(fd_.get(), part, at)) return Quote(EIO);
      const int error = WriteAll(rest.get(), part, at - from);
      if (error != 0) return Quote(error);
      at += n;
    }
    if (::fsync(rest.get()) != 0) return Quote(errno);
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
    const int error = WriteAll(fd_.get(), AsBytes(preamble_), 0);
    if (error != 0) return Quote(error);
    end_ = written_ = preamble_.size();
    ::fsync(directory_);
  }
  const int error = WriteAll(fd_.get(), bytes, written_);
  if (error != 0) return Quote(error);
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
  // Nobody ever sent a whole frame.
  if (end_ <= preamble_.size()) ::unlinkat(directory_, name_.c_str(), 0);
}

Status StoredTrace::Sync() const {
  if (fd_.valid() && ::fdatasync(fd_.get()) != 0) return Quote(errno);
  return Status::Ok();
}

}  // namespace tracefs
