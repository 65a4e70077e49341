#include "tracefs/export/buildxl_rows.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "tracefs/base/choice.h"
#include "tracefs/build/access.h"

namespace tracefs::buildxl {
namespace {

constexpr uint32_t kDirectory = 0x10;
constexpr uint32_t kNormal = 0x80;
constexpr uint32_t kReparsePoint = 0x400;
constexpr uint32_t kWriteThrough = 0x80000000;
constexpr uint32_t kNoBuffering = 0x20000000;

Rows One(Operation operation, Requested access) {
  return {1, {{operation, access}, {}}};
}

Rows Two(Operation first, Requested first_access, Operation second,
         Requested second_access) {
  return {2, {{first, first_access}, {second, second_access}}};
}

}  // namespace

std::string_view OperationName(Operation operation) {
  static constexpr Choice<Operation> kNames[] = {
      {"CreateFile", Operation::kCreateFile},
      {"Process", Operation::kProcess},
      {"CreateDirectory", Operation::kCreateDirectory},
      {"DeleteFile", Operation::kDeleteFile},
      {"RemoveDirectory", Operation::kRemoveDirectory},
      {"ProcessExit", Operation::kProcessExit},
      {"ProcessExec", Operation::kProcessExec},
      {"Readlink", Operation::kReadlink},
      {"ReadFile", Operation::kReadFile},
      {"WriteFile", Operation::kWriteFile},
      {"CreateHardlinkSource", Operation::kCreateHardlinkSource},
      {"CreateHardlinkDest", Operation::kCreateHardlinkDest},
      {"OpenDirectory", Operation::kOpenDirectory},
      {"Close", Operation::kClose},
      {"Probe", Operation::kProbe},
  };
  return WordOf(kNames, operation, "Unknown");
}

std::string_view RequestedName(Requested access) {
  static constexpr Choice<Requested> kNames[] = {
      {"None", Requested::kNone},           {"Read", Requested::kRead},
      {"Write", Requested::kWrite},         {"Probe", Requested::kProbe},
      {"Enumerate", Requested::kEnumerate},
  };
  return WordOf(kNames, access, "None");
}

Rows RowsOf(const build::FileStep& step) {
  using enum Operation;
  switch (step.op) {
    case Op::lookup_:
    case Op::getattr_:
    case Op::statx_:
    case Op::access_:
    case Op::statfs_:
    case Op::getxattr_:
    case Op::listxattr_:
      return One(kProbe, Requested::kProbe);
    case Op::opendir_:
    case Op::readdir_:
      return One(kOpenDirectory, Requested::kEnumerate);
    case Op::open_: {
      const bool writes = (step.flags & O_TRUNC) != 0 ||
                          build::OpenMode(step.flags) == O_WRONLY;
      return writes ? One(kWriteFile, Requested::kWrite)
                    : One(kReadFile, Requested::kRead);
    }
    case Op::read_:
      return One(kReadFile, Requested::kRead);
    case Op::create_:
    case Op::mknod_:
    case Op::symlink_:
      return One(kCreateFile, Requested::kWrite);
    case Op::write_:
    case Op::setattr_:
    case Op::fallocate_:
    case Op::setxattr_:
    case Op::removexattr_:
      return One(kWriteFile, Requested::kWrite);
    case Op::copy_file_range_:
      return Two(kReadFile, Requested::kRead, kWriteFile, Requested::kWrite);
    case Op::mkdir_:
      return One(kCreateDirectory, Requested::kWrite);
    case Op::rmdir_:
      return One(kRemoveDirectory, Requested::kWrite);
    case Op::unlink_:
      return One(kDeleteFile, Requested::kWrite);
    case Op::rename_:
      return RowsOfRename(S_ISDIR(step.mode));
    case Op::link_:
      return Two(kCreateHardlinkSource, Requested::kRead, kCreateHardlinkDest,
                 Requested::kWrite);
    case Op::readlink_:
      return One(kReadlink, Requested::kRead);
    case Op::release_:
    case Op::releasedir_:
      return One(kClose, Requested::kRead);
    case Op::tmpfile_:
    case Op::flush_:
    case Op::fsync_:
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

Rows RowsOfRename(bool is_directory) {
  using enum Operation;
  return is_directory ? Two(kRemoveDirectory, Requested::kWrite,
                            kCreateDirectory, Requested::kWrite)
                      : Two(kDeleteFile, Requested::kWrite, kCreateFile,
                            Requested::kWrite);
}

uint32_t AttributesOf(bool is_directory) {
  return is_directory ? kDirectory : kNormal;
}

uint32_t AttributesOf(const build::FileStep& step) {
  if (step.mode == 0 || step.error != 0) return kNotKnown;
  if (S_ISDIR(step.mode)) return kDirectory;
  return S_ISLNK(step.mode) ? kReparsePoint : kNormal;
}

uint32_t OpenFlagsOf(const build::FileStep& step) {
  if (step.op != Op::open_ && step.op != Op::create_) return kNotKnown;
  uint32_t flags = kNormal;
  if ((step.flags & (O_SYNC | O_DSYNC)) != 0) flags |= kWriteThrough;
  if ((step.flags & O_DIRECT) != 0) flags |= kNoBuffering;
  return flags;
}

}  // namespace tracefs::buildxl
