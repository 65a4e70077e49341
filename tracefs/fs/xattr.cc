// setxattr, getxattr, listxattr, removexattr.
#include <fcntl.h>
#include <linux/limits.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <charconv>
#include <cstring>
#include <string>
#include <string_view>

#include "tracefs/fs/callers_rights.h"
#include "tracefs/fs/io_buffer.h"
#include "tracefs/fs/op_scope.h"
#include "tracefs/fs/operations.h"
#include "tracefs/fs/xattrs.h"

namespace tracefs {
namespace {

Xattrs XattrsOf(OpScope& op, Inode& inode) {
  return {op.fs().options().proc_self_fd, op.fs().FdOf(inode)};
}

// Setting an access ACL takes the set-gid bit from a file, unless the caller is
// in its group or privileged (xfstests generic/375).
SetGid WithSetGid(int fd, std::string_view name) {
  struct stat st;
  return name == "system.posix_acl_access" &&
                 ::fstatat(fd, "", &st, AT_EMPTY_PATH) == 0 &&
                 (st.st_mode & S_ISGID) != 0
             ? SetGid::kMayBeKept
             : SetGid::kIsNotKept;
}

// Changes the attribute `name` by `call`, as the caller. 0 or an errno.
// `alters_names`: it is there either before or after that.
template <typename Call>
int AsItsCaller(OpScope& op, Inode& inode, const char* name,
                survive::Change change, bool alters_names, Call&& call) {
  const Xattrs xattrs = XattrsOf(op, inode);
  return op.Once(
      change,
      [&] {
        return alters_names && xattrs.Get(name, nullptr, 0) >= 0 ? uint64_t{1}
                                                                 : 0;
      },
      [&] {
        return WithCallersRights(
            op, inode, [&] { return call(xattrs); },
            WithSetGid(xattrs.fd(), name));
      });
}

// The names in a list, without those that the kernel shows only to the
// privileged: the daemon is privileged, its callers may not be.
size_t WithoutTrusted(char* list, size_t size) {
  char* kept = list;
  for (const char* name = list; name < list + size;) {
    const size_t length = ::strnlen(name, list + size - name) + 1;
    if (!std::string_view(name).starts_with("trusted.")) {
      std::memmove(kept, name, length);
      kept += length;
    }
    name += length;
  }
  return static_cast<size_t>(kept - list);
}

// Replies to a query: its size where `size` is 0, else the value.
void ReplyQuery(OpScope& op, ssize_t n, size_t size, const char* value) {
  if (n < 0) return op.ReplyError(errno);
  const auto got = static_cast<size_t>(n);
  op.End(n, 0, [&] {
    return size == 0 ? fuse_reply_xattr(op.req(), got)
                     : fuse_reply_buf(op.req(), value, got);
  });
}

}  // namespace

void FsSetxattr(fuse_req_t req, fuse_ino_t ino, const char* name,
                const char* value, size_t size, int flags) {
  OpScope op(req, Op::setxattr_);
  Inode& inode = op.fs().InodeOf(ino);
  op.About(inode);
  op.XattrName(name);
  op.Set(Field::kLength, size);
  op.Set(Field::kFlags, static_cast<uint32_t>(flags));
  op.Data(AsBytes(std::string_view(value, size)));
  op.Begin();
  op.ChangesFile(inode.number());
  op.ReplyError(AsItsCaller(op, inode, name, survive::Change::kMakes,
                            flags == XATTR_CREATE, [&](const Xattrs& xattrs) {
                              return xattrs.Set(name, value, size, flags);
                            }));
}

void FsGetxattr(fuse_req_t req, fuse_ino_t ino, const char* name, size_t size) {
  OpScope op(req, Op::getxattr_);
  Inode& inode = op.fs().InodeOf(ino);
  op.About(inode);
  op.XattrName(name);
  op.Set(Field::kLength, size);
  op.Begin();
  op.LooksAtFile(inode);
  char* const value = size == 0 ? nullptr : IoBuffer(size);
  ReplyQuery(op, XattrsOf(op, inode).Get(name, value, size), size, value);
}

void FsListxattr(fuse_req_t req, fuse_ino_t ino, size_t size) {
  OpScope op(req, Op::listxattr_);
  Inode& inode = op.fs().InodeOf(ino);
  op.About(inode);
  op.Set(Field::kLength, size);
  op.Begin();
  op.LooksAtFile(inode);
  if (op.fs().lists_trusted() || IsRootWith(op, kSysAdmin)) {
    char* const list = size == 0 ? nullptr : IoBuffer(size);
    ReplyQuery(op, XattrsOf(op, inode).List(list, size), size, list);
    return;
  }
  char* const list = IoBuffer(XATTR_LIST_MAX);
  ssize_t n =
      list == nullptr ? -1 : XattrsOf(op, inode).List(list, XATTR_LIST_MAX);
  if (list == nullptr) errno = ENOMEM;
  if (n > 0) {
    n = static_cast<ssize_t>(WithoutTrusted(list, static_cast<size_t>(n)));
    if (size != 0 && static_cast<size_t>(n) > size) {
      n = -1;
      errno = ERANGE;
    }
  }
  ReplyQuery(op, n, size, list);
}

void FsRemovexattr(fuse_req_t req, fuse_ino_t ino, const char* name) {
  OpScope op(req, Op::removexattr_);
  Inode& inode = op.fs().InodeOf(ino);
  op.About(inode);
  op.XattrName(name);
  op.Begin();
  op.ChangesFile(inode.number());
  int error = AsItsCaller(
      op, inode, name, survive::Change::kTakes, /*alters_names=*/true,
      [&](const Xattrs& xattrs) { return xattrs.Remove(name); });
  if (error == EPERM && std::string_view(name) == "security.capability") {
    error = ClearPrivileges(op, inode);
  }
  op.ReplyError(error);
}

}  // namespace tracefs
