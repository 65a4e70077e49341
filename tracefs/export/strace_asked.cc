#include "tracefs/export/strace_asked.h"

#include <fcntl.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "tracefs/format/record.h"

namespace tracefs {
namespace {

// open(2) refuses this bit: execve(2) opens programs and their loaders with it.
constexpr uint64_t kOpenForExec = 040;

bool IsSet(const Event& event, Field field) {
  return event.Has(field) && event.Get(field) != 0;
}

bool IsImported(const TableRow& row) {
  const format::TraceContext* const trace = row.record().trace;
  return trace != nullptr &&
         trace->description.header.Get("visibility") == "imported";
}

// Empty where the trace does not have it.
std::string_view CallOf(const TableRow& row) {
  const format::TraceContext* const trace = row.record().trace;
  if (trace == nullptr || !row.event().Has(Field::kSyscall)) return {};
  return trace->CallName(row.event().Get(Field::kSyscall));
}

bool IsOneOf(std::string_view call,
             std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, call) != names.end();
}

Asked If(bool asked) { return asked ? Asked::kByCall : Asked::kByWalk; }

// Files' capabilities and access lists: the kernel reads them before it writes
// to a file, runs it or decides a permission, and keeps lists for programs.
bool IsKernelsAttribute(std::string_view name) {
  return name == "security.capability" || name == "system.posix_acl_access" ||
         name == "system.posix_acl_default";
}

}  // namespace

Asked AskedRequests::By(const TableRow& row) {
  const Event& event = row.event();
  if (event.op == Op::lookup_) return Asked::kByWalk;
  if (IsImported(row)) return Asked::kByCall;
  if (const Asked asked = ByHandle(row); asked != Asked::kByCall) {
    return asked;
  }
  const std::string_view call = CallOf(row);
  switch (event.op) {
    case Op::getattr_:
    case Op::statx_:
      // With a handle the kernel wants to know the size: before a write at the
      // end of a file, for lseek(2). fstat(2) asks without one.
      if (event.op == Op::getattr_ && IsSet(event, Field::kFh)) {
        return Asked::kByNobody;
      }
      return call.empty() ? Asked::kByStatPerhaps
                          : If(IsOneOf(call, {"stat", "fstat", "lstat", "statx",
                                              "newfstatat", "fstatat64"}));
    case Op::readlink_:
      return If(IsOneOf(call, {"readlink", "readlinkat"}));
    case Op::getxattr_:
      if (!IsKernelsAttribute(event.xattr_name)) return Asked::kByCall;
      return If(
          IsOneOf(call, {"getxattr", "lgetxattr", "fgetxattr", "getxattrat"}));
    case Op::fsync_:
      // msync(2) and each write through such a handle ask for it as well.
      if (call.empty()) return If(!SyncsByItself(row));
      return If(IsOneOf(call, {"fsync", "fdatasync"}));
    case Op::release_:
    case Op::releasedir_:
      return Asked::kByClosePerhaps;
    case Op::setattr_:
      return IsSet(event, Field::kInferred) ? Asked::kByNobody : Asked::kByCall;
    case Op::lookup_:
    case Op::symlink_:
    case Op::mknod_:
    case Op::mkdir_:
    case Op::unlink_:
    case Op::rmdir_:
    case Op::rename_:
    case Op::link_:
    case Op::open_:
    case Op::create_:
    case Op::tmpfile_:
    case Op::read_:
    case Op::write_:
    case Op::flush_:
    case Op::opendir_:
    case Op::readdir_:
    case Op::fsyncdir_:
    case Op::statfs_:
    case Op::setxattr_:
    case Op::listxattr_:
    case Op::removexattr_:
    case Op::access_:
    case Op::getlk_:
    case Op::setlk_:
    case Op::flock_:
    case Op::fallocate_:
    case Op::lseek_:
    case Op::copy_file_range_:
    case Op::ioctl_:
    case Op::poll_:
      break;
  }
  return Asked::kByCall;
}

Asked AskedRequests::ByHandle(const TableRow& row) {
  const Event& event = row.event();
  const bool moves = event.op == Op::read_ || event.op == Op::write_;
  if (moves && IsSet(event, Field::kMapped)) {
    Add(KeyOf(row, Field::kInode), &mapped_);
    return Asked::kByNobody;
  }
  if (moves && IsSet(event, Field::kInferred)) return Asked::kByNobody;
  const Key handle = KeyOf(row, Field::kFh);
  if (event.op == Op::open_ || event.op == Op::create_) {
    programs_.erase(handle);
    synchronous_.erase(handle);
    const uint64_t flags = event.GetOr0(Field::kFlags);
    if ((flags & O_DSYNC) != 0) Add(handle, &synchronous_);
    if ((flags & kOpenForExec) == 0) return Asked::kByCall;
    if (handle.second != 0) Add(handle, &programs_);
    return Asked::kByNobody;
  }
  if (!programs_.contains(handle)) return Asked::kByCall;
  if (event.op == Op::release_) programs_.erase(handle);
  return Asked::kByNobody;
}

bool AskedRequests::SyncsByItself(const TableRow& row) const {
  const bool data = IsSet(row.event(), Field::kFlags);
  return synchronous_.contains(KeyOf(row, Field::kFh)) ||
         (data && mapped_.contains(KeyOf(row, Field::kInode)));
}

AskedRequests::Key AskedRequests::KeyOf(const TableRow& row, Field field) {
  const Event& event = row.event();
  return {row.record().trace, event.GetOr0(field)};
}

void AskedRequests::Add(const Key& key, std::set<Key>* keys) {
  if (keys->size() >= kMost) keys->clear();
  keys->insert(key);
}

}  // namespace tracefs
