// setxattr, getxattr, listxattr, removexattr.
#include <fcntl.h>
#include <linux/limits.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/fs/credentials.h"
#include "tracefs/fs/io_buffer.h"
#include "tracefs/fs/op_scope.h"
#include "tracefs/fs/operations.h"
#include "tracefs/fs/xattrs.h"

namespace tracefs {
namespace {

Xattrs XattrsOf(OpScope& op, Inode& inode) {
  return {op.fs().options().proc_self_fd, op.fs().FdOf(inode)};
}

// Setting or removing an access ACL takes the set-gid bit from a file, unless
// the caller is in its group or privileged. The kernel cannot tell us (that
// needs FUSE_SETXATTR_EXT, which libfuse does not pass on), so we ask it who
// the caller is (xfstests generic/375).
bool LosesSetgid(fuse_req_t req, int fd, std::string_view name) {
  if (name != "system.posix_acl_access") return false;
  struct stat st;
  if (::fstatat(fd, "", &st, AT_EMPTY_PATH) != 0) return false;
  if ((st.st_mode & S_ISGID) == 0) return false;
  const fuse_ctx* caller = ContextOf(req);
  if (caller->uid == 0 || caller->gid == st.st_gid) return false;
  std::vector<gid_t> groups(64);
  int n =
      fuse_req_getgroups(req, static_cast<int>(groups.size()), groups.data());
  if (n > static_cast<int>(groups.size())) {
    groups.resize(static_cast<size_t>(n));
    n = fuse_req_getgroups(req, n, groups.data());
  }
  groups.resize(static_cast<size_t>(std::max(n, 0)));
  return std::find(groups.begin(), groups.end(), st.st_gid) == groups.end();
}

// Changes the attribute `name` by `change`, with what that means for the
// set-gid bit. 0 or an errno.
template <typename Change>
int AsItsCaller(OpScope& op, Inode& inode, std::string_view name,
                Change&& change) {
  const Xattrs xattrs = XattrsOf(op, inode);
  const bool loses_setgid = LosesSetgid(op.req(), xattrs.fd(), name);
  const fuse_ctx* caller = ContextOf(op.req());
  const AsCaller as_caller(caller->uid, caller->gid);
  if (as_caller.error() != 0) return as_caller.error();
  ThreadCredentials::Current().AllowFsetid(!loses_setgid);
  return change(xattrs) == 0 ? 0 : errno;
}

// The names in a list, without those that the kernel shows to the privileged
// only: the daemon is, its callers may not be.
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
  op.ReplyError(AsItsCaller(op, inode, name, [&](const Xattrs& xattrs) {
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
  if (ContextOf(req)->uid == 0 || op.fs().lists_trusted()) {
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
  op.ReplyError(AsItsCaller(op, inode, name, [&](const Xattrs& xattrs) {
    return xattrs.Remove(name);
  }));
}

}  // namespace tracefs
