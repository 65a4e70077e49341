#include "tracefs/recv/stored_trace.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <vector>

#include "tracefs/format/frame.h"

namespace tracefs {
namespace {

// Frames this near to the end may never have reached the disk when a machine
// went down; all before were acknowledged, and so are durable.
constexpr uint64_t kDoubtedBytes = uint64_t{256} << 20;
constexpr int kMaxRests = 100;

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

}  // namespace

Status StoredTrace::Quote(int error) const {
  return Status::System(error, "trace file '" + name_ + "'");
}

Status StoredTrace::Find() {
  fd_.Reset(::openat(directory_, name_.c_str(),
                     O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!fd_) return errno == ENOENT ? Status::Ok() : Quote(errno);
  struct stat st;
  if (::fstat(fd_.get(), &st) != 0) return Quote(errno);
  if (!S_ISREG(st.st_mode)) {
    return Status::Invalid("'" + name_ + "' is not a regular file");
  }
  const auto size = static_cast<uint64_t>(st.st_size);
  std::string there(std::min<uint64_t>(preamble_.size(), size), '\0');
  if (!ReadAll(fd_.get(),
               {reinterpret_cast<std::byte*>(there.data()), there.size()}, 0)) {
    return Quote(EIO);
  }
  if (there != preamble_.substr(0, there.size())) {
    return Status::Invalid("'" + name_ +
                           "' holds another trace with the same serial");
  }
  if (there.size() < preamble_.size()) {
    // Made, and no more.
    const int error = WriteAll(fd_.get(), AsBytes(preamble_), 0);
    if (error != 0) return Quote(error);
    end_ = written_ = preamble_.size();
    return Status::Ok();
  }
  return Scan(size);
}

Status StoredTrace::Scan(uint64_t size) {
  std::vector<std::byte> payload;
  uint64_t at = preamble_.size();
  bool cut = false;  // the rest is a frame that was not finished
  while (at < size) {
    std::array<std::byte, format::kFrameHeaderBytes> header;
    format::FrameHeader frame;
    if (size - at < header.size()) {
      cut = true;
      break;
    }
    if (!ReadAll(fd_.get(), header, at)) return Quote(EIO);
    if (!format::DecodeFrameHeader(header, &frame) || frame.serial != serial_ ||
        frame.sequence < next_) {
      break;
    }
    const uint64_t bytes = header.size() + frame.payload_bytes;
    if (size - at < bytes) {
      cut = true;
      break;
    }
    if (size - at <= kDoubtedBytes) {
      payload.resize(frame.payload_bytes);
      if (!ReadAll(fd_.get(), payload, at + header.size())) return Quote(EIO);
      if (format::FrameCrc(header, payload) != frame.crc) break;
    }
    at += bytes;
    next_ = frame.sequence + 1;
  }
  if (at < size) {
    if (!cut) {
      if (Status s = KeepRest(at, size); !s.ok()) return s;
    }
    if (::ftruncate(fd_.get(), static_cast<off_t>(at)) != 0) {
      return Quote(errno);
    }
  }
  end_ = written_ = at;
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
