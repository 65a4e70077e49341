#include "drivers/output/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

namespace tracefs {
namespace {

// Space is taken in steps ahead of the end, so that a disk that fills up still
// has room for what says so: LOSS and FINAL.
constexpr uint64_t kReserveStep = 1 << 20;
constexpr uint64_t kFinalReserve = 64 * 1024;

class File final : public OutputDriver {
 public:
  File(FileOptions options, UniqueFd fd, bool remove_unused)
      : options_(std::move(options)),
        fd_(std::move(fd)),
        remove_unused_(remove_unused) {}
  ~File() override {
    if (remove_unused_) Remove();
  }

  Status Initialize(const TraceIdentity& identity) override {
    remove_unused_ = false;
    ReserveUpTo(identity.preamble.size());
    return Append(AsBytes(identity.preamble), {});
  }

  Status Write(ByteSpan frame_header, ByteSpan payload,
               const BlockInfo& info) override {
    const uint64_t needed = frame_header.size() + payload.size();
    if (!info.last && !ReserveUpTo(end_ + needed)) {
      return Refused(Status::System(ENOSPC, Quoted()));
    }
    Status status = Append(frame_header, payload);
    return status.ok() ? status : Refused(std::move(status));
  }

  Status Flush() override { return Status::Ok(); }

  Status Release() override {
    // Gives back what was reserved.
    Status status;
    if (::ftruncate(fd_.get(), static_cast<off_t>(end_)) != 0) {
      status = Status::System(errno, Quoted());
    }
    if (options_.sync && ::fdatasync(fd_.get()) != 0 && status.ok()) {
      status = Status::System(errno, Quoted());
    }
    // Delayed errors (quota, network file systems) show only here.
    if (::close(fd_.Release()) != 0 && errno != EINTR && status.ok()) {
      status = Status::System(errno, Quoted());
    }
    return status;
  }

  size_t PreferredBlockSize() const override { return options_.buffer_bytes; }

 private:
  std::string Quoted() const { return "trace file '" + options_.path + "'"; }

  // Makes sure of room for a file of `size` bytes and for FINAL after it; true
  // where the file system cannot promise, too.
  bool ReserveUpTo(uint64_t size) {
    if (!can_reserve_ || size + kFinalReserve <= reserved_) return true;
    const uint64_t upto = size + kFinalReserve + kReserveStep;
    if (Allocate(upto)) return true;
    // Not a whole step is left: take exactly what is needed.
    return Allocate(size + kFinalReserve);
  }

  bool Allocate(uint64_t upto) {
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

  // Appends both pieces or nothing.
  Status Append(ByteSpan first, ByteSpan second) {
    uint64_t at = end_;
    std::array<ByteSpan, 2> left = {first, second};
    while (!left[0].empty() || !left[1].empty()) {
      std::array<iovec, 2> iov;
      int count = 0;
      for (const ByteSpan piece : left) {
        if (piece.empty()) continue;
        iov[static_cast<size_t>(count++)] = {
            const_cast<std::byte*>(piece.data()), piece.size()};
      }
      const ssize_t n =
          ::pwritev(fd_.get(), iov.data(), count, static_cast<off_t>(at));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) {
        const Status failed = Status::System(n < 0 ? errno : ENOSPC, Quoted());
        // What was written of the frame goes, so that the file ends well.
        if (at != end_) {
          (void)!::ftruncate(fd_.get(), static_cast<off_t>(end_));
          reserved_ = std::min(reserved_, end_);
        }
        return failed;
      }
      at += static_cast<uint64_t>(n);
      auto taken = static_cast<size_t>(n);
      for (ByteSpan& piece : left) {
        const size_t part = std::min(taken, piece.size());
        piece = piece.subspan(part);
        taken -= part;
      }
    }
    end_ = at;
    return Status::Ok();
  }

  Status Refused(Status status) {
    if (!reported_) {
      reported_ = true;
      std::fprintf(stderr,
                   "tracefs: %s; events are lost and counted in the trace "
                   "until there is room\n",
                   status.message().c_str());
    }
    return status;
  }

  // What is there under the name, if it is still this file.
  void Remove() const {
    struct stat ours;
    struct stat there;
    if (::fstat(fd_.get(), &ours) == 0 &&
        ::lstat(options_.path.c_str(), &there) == 0 &&
        ours.st_dev == there.st_dev && ours.st_ino == there.st_ino) {
      static_cast<void>(::unlink(options_.path.c_str()));
    }
  }

  const FileOptions options_;
  UniqueFd fd_;
  bool remove_unused_;     // we made it, and nothing was written yet
  uint64_t end_ = 0;       // after the last whole frame
  uint64_t reserved_ = 0;  // bytes allocated from the start
  bool can_reserve_ = true;
  bool reported_ = false;
};

}  // namespace

Result<std::unique_ptr<OutputDriver>> FileDriver::Create(FileOptions options,
                                                         OutputFileId* id) {
  const int sync = options.sync ? O_DSYNC : 0;
  UniqueFd fd(::open(
      options.path.c_str(),
      O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | sync,
      0600));
  if (!fd) {
    const int error = errno;
    Status status = Status::System(error, "trace file '" + options.path + "'");
    if (error == EEXIST) {
      return Status::System(error, "trace file '" + options.path +
                                       "' (a trace never replaces a file; "
                                       "remove it or choose another name)");
    }
    return status;
  }
  struct stat st;
  if (::fstat(fd.get(), &st) != 0) {
    return Status::System(errno, "trace file '" + options.path + "'");
  }
  if (id != nullptr) *id = {st.st_dev, st.st_ino};
  return std::unique_ptr<OutputDriver>(std::make_unique<File>(
      std::move(options), std::move(fd), /*remove_unused=*/true));
}

Result<std::unique_ptr<OutputDriver>> FileDriver::Adopt(FileOptions options,
                                                        UniqueFd fd,
                                                        OutputFileId* id) {
  const std::string what = "trace file '" + options.path + "'";
  struct stat st;
  if (::fstat(fd.get(), &st) != 0) return Status::System(errno, what);
  const int flags = ::fcntl(fd.get(), F_GETFL);
  if (flags < 0) return Status::System(errno, what);
  const bool writable =
      (flags & O_PATH) == 0 && (flags & O_ACCMODE) != O_RDONLY;
  if (!S_ISREG(st.st_mode) || st.st_size != 0 || !writable ||
      (flags & O_APPEND) != 0) {
    return Status::Invalid(what +
                           ": the descriptor that was sent is not a new file, "
                           "open for writing");
  }
  if (options.sync && (flags & O_DSYNC) == 0) {
    return Status::Invalid(what + ": the descriptor lacks O_DSYNC");
  }
  if (id != nullptr) *id = {st.st_dev, st.st_ino};
  return std::unique_ptr<OutputDriver>(std::make_unique<File>(
      std::move(options), std::move(fd), /*remove_unused=*/false));
}

}  // namespace tracefs
