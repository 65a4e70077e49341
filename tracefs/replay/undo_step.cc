#include "tracefs/replay/undo_step.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "tracefs/base/printable.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/replay/open_beneath.h"

namespace tracefs::replay {
namespace {

using Kind = UndoStep::Kind;

constexpr size_t kPiece = size_t{256} << 10;

bool WriteAt(int fd, const std::byte* bytes, size_t size, uint64_t offset) {
  while (size > 0) {
    const ssize_t n = ::pwrite(fd, bytes, size, static_cast<off_t>(offset));
    if (n <= 0) return false;
    bytes += n;
    size -= static_cast<size_t>(n);
    offset += static_cast<uint64_t>(n);
  }
  return true;
}

bool WritePieces(int store, const UndoStep& step, int to) {
  std::vector<std::byte> bytes(kPiece);
  for (const UndoStep::Piece& piece : step.pieces) {
    for (uint64_t done = 0; done < piece.length;) {
      const size_t most = std::min<uint64_t>(kPiece, piece.length - done);
      const ssize_t n = ::pread(store, bytes.data(), most,
                                static_cast<off_t>(piece.stored + done));
      if (n <= 0) return false;
      if (!WriteAt(to, bytes.data(), static_cast<size_t>(n),
                   piece.offset + done)) {
        return false;
      }
      done += static_cast<uint64_t>(n);
    }
  }
  return true;
}

// Makes zeros of what is there: a hole, where the file system has such.
bool Zero(int fd, uint64_t begin, uint64_t end) {
  if (begin >= end) return true;
  if (::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  static_cast<off_t>(begin),
                  static_cast<off_t>(end - begin)) == 0) {
    return true;
  }
  const std::vector<std::byte> zeros(kPiece);
  for (; begin < end; begin += std::min<uint64_t>(kPiece, end - begin)) {
    const size_t most = std::min<uint64_t>(kPiece, end - begin);
    if (!WriteAt(fd, zeros.data(), most, begin)) return false;
  }
  return true;
}

bool ZeroBetweenPieces(int fd, const UndoStep& step, uint64_t size) {
  uint64_t at = step.offset;
  for (const UndoStep::Piece& piece : step.pieces) {
    if (!Zero(fd, at, std::min(piece.offset, size))) return false;
    at = piece.offset + piece.length;
  }
  return Zero(fd, at, std::min(step.offset + step.length, size));
}

// Room for all of it first, so that none is left half done for want of it.
bool Reserve(int fd, const UndoStep& step) {
  return std::ranges::all_of(step.pieces, [&](const UndoStep::Piece& piece) {
    return ::fallocate(fd, FALLOC_FL_KEEP_SIZE,
                       static_cast<off_t>(piece.offset),
                       static_cast<off_t>(piece.length)) == 0 ||
           errno == EOPNOTSUPP;
  });
}

bool PutContents(int store, const UndoStep& step, int fd) {
  struct stat st;
  if (::fstat(fd, &st) != 0) return false;
  const auto size = static_cast<uint64_t>(st.st_size);
  if (Reserve(fd, step) && ZeroBetweenPieces(fd, step, size) &&
      WritePieces(store, step, fd) &&
      ::ftruncate(fd, static_cast<off_t>(step.size)) == 0) {
    return true;
  }
  const int error = errno;
  (void)::ftruncate(fd, st.st_size);  // the error is the first one
  errno = error;
  return false;
}

// Attributes of what was made under that name.
bool Dress(int dir, const std::string& name, bool owners,
           const UndoStep& step) {
  if (owners && ::fchownat(dir, name.c_str(), step.uid, step.gid,
                           AT_SYMLINK_NOFOLLOW) != 0) {
    return false;
  }
  const UniqueFd fd(OpenBeneath(dir, name, O_PATH | O_NOFOLLOW));
  if (!fd) return false;
  if (step.kind != Kind::kMakeLink &&
      ChmodFd(fd.get(), step.mode & 07777) != 0) {
    return false;
  }
  for (const auto& [key, value] : step.xattrs) {
    if (::setxattr(FdPath(fd.get()).c_str(), key.c_str(), value.data(),
                   value.size(), 0) != 0 &&
        errno != EOPNOTSUPP && errno != EPERM) {
      return false;
    }
  }
  return true;
}

bool MakeBare(int store, int dir, const std::string& name, const UndoStep& step,
              bool* made) {
  switch (step.kind) {
    case Kind::kMakeDir:
      *made = ::mkdirat(dir, name.c_str(), 0700) == 0;
      return *made;
    case Kind::kMakeLink:
      *made = ::symlinkat(step.other.c_str(), dir, name.c_str()) == 0;
      return *made;
    case Kind::kMakeNode:
      *made = ::mknodat(dir, name.c_str(), (step.mode & S_IFMT) | 0600, 0) == 0;
      return *made;
    default: {
      const UniqueFd fd(OpenBeneath(
          dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
      *made = static_cast<bool>(fd);
      return fd && PutContents(store, step, fd.get());
    }
  }
}

// What cannot be made whole is not left there.
bool DoMake(int store, int dir, const std::string& name, bool owners,
            const UndoStep& step) {
  bool made = false;
  if (MakeBare(store, dir, name, step, &made) &&
      Dress(dir, name, owners, step)) {
    return true;
  }
  const int error = errno;
  if (made) {
    ::unlinkat(dir, name.c_str(),
               step.kind == Kind::kMakeDir ? AT_REMOVEDIR : 0);
  }
  errno = error;
  return false;
}

bool DoChange(int store, int dir, const std::string& name,
              const UndoStep& step) {
  const bool writes = step.kind == Kind::kContents;
  const UniqueFd fd(OpenBeneath(
      dir, name, (writes ? O_WRONLY | O_NONBLOCK : O_PATH) | O_NOFOLLOW));
  if (!fd) return false;
  switch (step.kind) {
    case Kind::kContents:
      return PutContents(store, step, fd.get());
    case Kind::kMode:
      return ChmodFd(fd.get(), step.mode) == 0;
    case Kind::kXattr:
      return ::setxattr(FdPath(fd.get()).c_str(), step.other.c_str(),
                        step.value.data(), step.value.size(), 0) == 0;
    default:
      return ::removexattr(FdPath(fd.get()).c_str(), step.other.c_str()) == 0;
  }
}

// `back`: from `other` to `path`, as it was before the step.
bool DoRename(int dir, const std::string& name, int other_dir,
              const std::string& other, bool exchange, bool back) {
  const unsigned how = exchange ? RENAME_EXCHANGE : RENAME_NOREPLACE;
  return (back ? ::renameat2(other_dir, other.c_str(), dir, name.c_str(), how)
               : ::renameat2(dir, name.c_str(), other_dir, other.c_str(),
                             how)) == 0;
}

bool DoStep(int root, int store, bool owners, const UndoStep& step, bool back) {
  std::string name;
  const UniqueFd dir = OpenParentBeneath(root, step.path, &name);
  if (!dir) return false;
  std::string other;
  UniqueFd other_dir;
  const bool renames =
      step.kind == Kind::kRename || step.kind == Kind::kExchange;
  if (renames || step.kind == Kind::kLinkAgain) {
    other_dir = OpenParentBeneath(root, step.other, &other);
    if (!other_dir) return false;
  }
  switch (step.kind) {
    case Kind::kRemove:
    case Kind::kRemoveDir:
      return ::unlinkat(dir.get(), name.c_str(),
                        step.kind == Kind::kRemoveDir ? AT_REMOVEDIR : 0) == 0;
    case Kind::kRename:
    case Kind::kExchange:
      return DoRename(dir.get(), name, other_dir.get(), other,
                      step.kind == Kind::kExchange, back);
    case Kind::kLinkAgain:
      return ::linkat(other_dir.get(), other.c_str(), dir.get(), name.c_str(),
                      0) == 0;
    case Kind::kOwner:
      return owners && ::fchownat(dir.get(), name.c_str(), step.uid, step.gid,
                                  AT_SYMLINK_NOFOLLOW) == 0;
    case Kind::kMakeFile:
    case Kind::kMakeDir:
    case Kind::kMakeLink:
    case Kind::kMakeNode:
      return DoMake(store, dir.get(), name, owners, step);
    default:
      return DoChange(store, dir.get(), name, step);
  }
}

}  // namespace

Status DoUndoGroup(int root, int store, bool owners, const UndoGroup& group) {
  for (size_t i = 0; i < group.steps.size(); ++i) {
    const UndoStep& step = group.steps[i];
    if (step.is_nothing) continue;
    if (DoStep(root, store, owners, step, /*back=*/false)) continue;
    const Status failed = Status::System(errno, step.Text());
    // A name that was given back before is taken away again.
    while (i-- > 0) {
      const UndoStep& done = group.steps[i];
      const bool renames =
          done.kind == Kind::kRename || done.kind == Kind::kExchange;
      if (renames && !done.is_nothing) {
        (void)DoStep(root, store, owners, done, /*back=*/true);
      }
    }
    return failed;
  }
  return {};
}

std::string UndoStep::Text() const {
  const std::string place = Printable(path);
  switch (kind) {
    case Kind::kRemove:
      return "remove " + place;
    case Kind::kRemoveDir:
      return "remove directory " + place;
    case Kind::kRename:
      return "rename " + place + " to " + Printable(other);
    case Kind::kExchange:
      return "exchange " + place + " and " + Printable(other);
    case Kind::kMakeFile:
      return "make file " + place + ", " + std::to_string(size) + " bytes";
    case Kind::kMakeDir:
      return "make directory " + place;
    case Kind::kMakeLink:
      return "make link " + place + " to " + Printable(other);
    case Kind::kMakeNode:
      return "make node " + place;
    case Kind::kLinkAgain:
      return "make " + place + " a name of " + Printable(other);
    case Kind::kContents:
      return (length == 0
                  ? std::string("resize ")
                  : "write back " + std::to_string(length) + " bytes at " +
                        std::to_string(offset) + " of ") +
             place + ", which has " + std::to_string(size) + " bytes then";
    case Kind::kMode:
      return "mode of " + place;
    case Kind::kOwner:
      return "owner of " + place;
    case Kind::kXattr:
      return "attribute " + Printable(other) + " of " + place;
    case Kind::kRemoveXattr:
      return "remove attribute " + Printable(other) + " of " + place;
  }
  return {};
}

}  // namespace tracefs::replay
