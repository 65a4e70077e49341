#include "tracefs/fs/keep_before.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

#include "tracefs/base/clock.h"

namespace tracefs {
namespace {

// Nobody's access time changes. A lease that others hold is not waited for.
constexpr int kHow = O_RDONLY | O_NOATIME | O_NONBLOCK | O_CLOEXEC;

// `open` opens a file with the flags that it is given.
template <typename Open>
UniqueFd OpenToKeep(Open&& open) {
  UniqueFd fd(open(kHow));
  // An ordinary user's daemon may not ask for that on somebody else's file.
  if (!fd && errno == EPERM) fd.Reset(open(kHow & ~O_NOATIME));
  return fd;
}

}  // namespace

KeepBefore::KeepBefore(OpScope& op) : op_(op), keeping_(op.Keeps()) {}

int KeepBefore::Range(Inode& inode, uint64_t begin, uint64_t end) {
  if (keeping_ == nullptr || !inode.is_regular() || inode.is_output()) return 0;
  struct stat st;
  {
    const BackingFd fd = op_.fs().FdOf(inode);
    if (::fstatat(fd.get(), "", &st, AT_EMPTY_PATH) != 0) return 0;
  }
  return Keep(st, begin, end,
              [&](int how) { return op_.fs().Reopen(inode, how); });
}

int KeepBefore::Name(int dir, const char* name, uint64_t number) {
  if (keeping_ == nullptr) return 0;
  struct stat st;
  const UniqueFd fd(::openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!fd || ::fstatat(fd.get(), "", &st, AT_EMPTY_PATH) != 0 ||
      !S_ISREG(st.st_mode) || st.st_nlink != 1 || st.st_ino == number) {
    return 0;
  }
  std::array<char, 16> text{};
  std::to_chars(text.data(), text.data() + text.size() - 1, fd.get());
  return Keep(st, 0, UINT64_MAX, [&](int how) {
    return ::openat(op_.fs().options().proc_self_fd, text.data(), how);
  });
}

template <typename OpenFile>
int KeepBefore::Keep(const struct stat& st, uint64_t begin, uint64_t end,
                     OpenFile&& open) {
  if (keeping_->wants && !keeping_->wants(op_.event(), st)) return 0;
  const auto size = static_cast<uint64_t>(st.st_size);
  is_open_ = true;
  offset_ = std::min(begin, size);
  mtime_ns_ = NsOf(st.st_mtim);
  end = std::min(end, size);
  if (offset_ >= end) return 0;
  // Opened and kept as who keeps it: the folder is his.
  const AsDaemon daemon;
  error_ = daemon.error();
  const UniqueFd fd = error_ == 0 ? OpenToKeep(open) : UniqueFd();
  if (error_ == 0 && !fd) error_ = errno;
  if (error_ == 0) {
    error_ = keeping_->folder->Keep(fd.get(), offset_, end, size, &part_);
  }
  if (error_ == 0) return 0;
  keeping_->folder->NoteFailure(error_);
  if (!keeping_->must) return 0;
  is_open_ = false;
  return error_ == EFBIG ? ENOSPC : error_;
}

void KeepBefore::Settle(bool done) {
  if (!is_open_) return;
  is_open_ = false;
  if (!done) return keeping_->folder->Drop(part_);
  op_.Set(Field::kKeptMtime, mtime_ns_);
  if (error_ != 0) {
    op_.Set(Field::kNotKept, static_cast<uint32_t>(error_));
    return;
  }
  op_.Set(Field::kKeptOffset, offset_);
  op_.Set(Field::kKeptLength, part_.length);
  if (part_.object == 0) return;
  op_.Set(Field::kKept, part_.object);
  op_.Set(Field::kKeptAt, part_.at);
  if (part_.is_copy) {
    op_.Set(Field::kKeptChecksum, part_.checksum);
  } else {
    op_.Set(Field::kKeptChanged, part_.changed_ns);
  }
  if (const uint64_t first = keeping_->folder->Settle(part_); first != 0) {
    op_.Set(Field::kKeptFrom, first);
  }
}

}  // namespace tracefs
