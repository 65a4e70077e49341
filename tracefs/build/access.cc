#include "tracefs/build/access.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/stat.h>

#include <algorithm>

#include "tracefs/event/op_set.h"

namespace tracefs::build {
namespace {

// The kernel opens what execve(2) runs with this flag (FMODE_EXEC).
constexpr uint32_t kOpenForExec = 040;

uint16_t AccessOfOpen(uint32_t flags) {
  uint16_t access = kNoAccess;
  const unsigned mode = OpenMode(flags);
  if (mode != O_WRONLY) access |= kRead;
  if (mode != O_RDONLY || (flags & O_TRUNC) != 0) access |= kWrite;
  if ((flags & kOpenForExec) != 0) access |= kRun;
  return access;
}

// For an operation that was refused.
uint16_t AccessOfFailure(const FileStep& step) {
  if (step.error != ENOENT && step.error != ENOTDIR) {
    // It existed, or at least was looked up.
    return HasName(step.op) || step.op == Op::open_ ? kProbe : kNoAccess;
  }
  const bool tells =
      IsAmong<38, Op::lookup_, Op::open_, Op::getattr_, Op::statx_, Op::access_,
              Op::readlink_, Op::unlink_, Op::rmdir_, Op::rename_>(step.op);
  return tells ? kProbe | kAbsent : kProbe;
}

// The end of what was written; the largest number for what no file can have.
uint64_t EndOf(uint64_t offset, uint64_t bytes) {
  if (bytes == 0) return 0;
  return offset > UINT64_MAX - bytes ? UINT64_MAX : offset + bytes;
}

}  // namespace

bool Exchanges(const FileStep& step) {
  return step.op == Op::rename_ && (step.flags & RENAME_EXCHANGE) != 0;
}

AccessPair AccessOf(const FileStep& step) {
  if (step.error != 0) return {AccessOfFailure(step), kNoAccess};
  const uint16_t folder = S_ISDIR(step.mode) ? kFolder : kNoAccess;
  switch (step.op) {
    case Op::lookup_:
    case Op::getattr_:
    case Op::statx_:
    case Op::access_:
    case Op::getxattr_:
    case Op::listxattr_:
    case Op::statfs_:
    case Op::readlink_:
      return {static_cast<uint16_t>(kProbe | folder), kNoAccess};
    case Op::open_:
      return {AccessOfOpen(step.flags), kNoAccess};
    case Op::create_:
      return {
          static_cast<uint16_t>(AccessOfOpen(step.flags) | kWrite | kCreate),
          kNoAccess};
    case Op::read_:
      return {kRead, kNoAccess};
    case Op::copy_file_range_:
      return {kRead, kWrite};
    case Op::write_:
    case Op::fallocate_:
      return {kWrite, kNoAccess};
    case Op::setattr_:
      return {step.resizes ? kWrite : kChange, kNoAccess};
    case Op::setxattr_:
    case Op::removexattr_:
      return {kChange, kNoAccess};
    case Op::mknod_:
    case Op::symlink_:
      return {kWrite | kCreate, kNoAccess};
    case Op::mkdir_:
      return {kCreate | kFolder, kNoAccess};
    case Op::unlink_:
      return {kRemove, kNoAccess};
    case Op::rmdir_:
      return {kRemove | kFolder, kNoAccess};
    case Op::rename_:
      if (Exchanges(step)) {
        // Both stay, and each has what was the other one's.
        const auto both = static_cast<uint16_t>(
            kExchange | (folder != 0 ? kFolder : kRead | kWrite));
        return {both, both};
      }
      if (folder != 0) return {kRemove | kFolder, kCreate | kFolder};
      return {kRead | kRemove, kWrite | kCreate};
    case Op::link_:
      return {kRead, kWrite | kCreate};
    case Op::opendir_:
    case Op::readdir_:
      return {kList | kFolder, kNoAccess};
    case Op::tmpfile_:
    case Op::flush_:
    case Op::release_:
    case Op::fsync_:
    case Op::releasedir_:
    case Op::fsyncdir_:
    case Op::getlk_:
    case Op::setlk_:
    case Op::flock_:
    case Op::lseek_:
    case Op::ioctl_:
    case Op::poll_:
      break;
  }
  return {};
}

SizePair SizesOf(const FileStep& step) {
  if (step.error != 0) return {};
  if (step.op == Op::copy_file_range_) {
    return {step.size, EndOf(step.offset_out, step.bytes)};
  }
  if (step.op == Op::write_) {
    return {std::max(step.size, EndOf(step.offset, step.bytes)), 0};
  }
  return {step.size, step.size};
}

}  // namespace tracefs::build
