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

#include "tracefs/base/file_extent.h"
#include "tracefs/base/file_io.h"
#include "tracefs/base/printable.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/replay/acl.h"
#include "tracefs/replay/open_beneath.h"

namespace tracefs::replay {
namespace {

using Kind = UndoStep::Kind;

constexpr size_t kStepPiece = size_t{256} << 10;

bool WriteAt(int fd, const std::byte* bytes, size_t size, uint64_t offset) {
  return WriteAllAt(fd, {bytes, size}, offset, "undo").ok();
}

bool WritePieces(int store, const UndoStep& step, int to) {
  std::vector<std::byte> bytes(kStepPiece);
  for (const UndoStep::Piece& piece : step.pieces) {
    for (uint64_t done = 0; done < piece.length;) {
      const size_t most = std::min<uint64_t>(kStepPiece, piece.length - done);
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
  const std::vector<std::byte> zeros(kStepPiece);
  for (; begin < end; begin += std::min<uint64_t>(kStepPiece, end - begin)) {
    const size_t most = std::min<uint64_t>(kStepPiece, end - begin);
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

bool PutTime(const UndoStep& step, int fd) {
  if (!step.has_mtime) return true;
  constexpr int64_t kSecond = 1'000'000'000;
  const int64_t rest = (step.mtime_ns % kSecond + kSecond) % kSecond;
  const timespec times[2] = {{0, UTIME_OMIT},
                             {(step.mtime_ns - rest) / kSecond, rest}};
  return ::futimens(fd, times) == 0;
}

}  // namespace

bool PutContents(int store, const UndoStep& step, int fd) {
  struct stat st;
  if (::fstat(fd, &st) != 0) return false;
  const auto size = static_cast<uint64_t>(st.st_size);
  return Reserve(fd, step) && ZeroBetweenPieces(fd, step, size) &&
         WritePieces(store, step, fd) &&
         ::ftruncate(fd, static_cast<off_t>(step.size)) == 0 &&
         PutTime(step, fd);
}

namespace {

// Of ACLs all, as what the mode gives the group is the mask of an ACL; of
// others those that this file system, or user, has.
bool PutXattrs(int fd, const UndoStep& step, bool acls) {
  const std::string path = FdPath(fd);
  return std::ranges::all_of(step.xattrs, [&](const auto& xattr) {
    const auto& [name, value] = xattr;
    return IsAcl(name) != acls ||
           ::setxattr(path.c_str(), name.c_str(), value.data(), value.size(),
                      0) == 0 ||
           (!acls && (errno == EOPNOTSUPP || errno == EPERM));
  });
}

// Attributes of what was made under that name.
bool Dress(int dir, const std::string& name, bool owners,
           const UndoStep& step) {
  if (owners && ::fchownat(dir, name.c_str(), step.uid, step.gid,
                           AT_SYMLINK_NOFOLLOW) != 0) {
    return false;
  }
  const UniqueFd fd(OpenBeneath(dir, name, O_PATH | O_NOFOLLOW));
  if (!fd || !DropInheritedAcls(fd.get())) return false;
  // While its owner may write to it; an ACL says who may in the end.
  if (!PutXattrs(fd.get(), step, /*acls=*/false)) return false;
  if (step.kind != Kind::kMakeLink &&
      ChmodFd(fd.get(), step.mode & 07777) != 0) {
    return false;
  }
  return PutXattrs(fd.get(), step, /*acls=*/true);
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

}  // namespace

bool MakeWhole(int store, int dir, const std::string& name, bool owners,
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

Status KeepPieces(int fd, uint64_t begin, uint64_t end, int store,
                  uint64_t most, uint64_t* at, UndoStep* step) {
  std::vector<std::byte> bytes(kStepPiece);
  while (const std::optional<FileExtent> data = NextData(fd, begin, end)) {
    if (data->end - data->begin > most - *at) {
      return Status::System(EDQUOT, "undo: room for the bytes to be kept");
    }
    UndoStep::Piece& piece = step->pieces.emplace_back();
    piece.offset = data->begin;
    piece.stored = *at;
    for (begin = data->begin; begin < data->end;) {
      const ssize_t n = ::pread(
          fd, bytes.data(), std::min<uint64_t>(kStepPiece, data->end - begin),
          static_cast<off_t>(begin));
      if (n < 0) return Status::System(errno, "undo: bytes to be kept");
      if (n == 0) return {};  // it became shorter
      const ByteSpan read(bytes.data(), static_cast<size_t>(n));
      if (Status s = WriteAllAt(store, read, *at, "undo"); !s.ok()) return s;
      piece.length += read.size();
      begin += read.size();
      *at += read.size();
    }
  }
  return {};
}

bool KeepContents(int fd, const UndoStep& step, int store, UndoStep* before) {
  struct stat st;
  struct stat kept;
  if (::fstat(fd, &st) != 0 || ::fstat(store, &kept) != 0) return false;
  const auto size = static_cast<uint64_t>(st.st_size);
  before->kind = Kind::kContents;
  before->has_mtime = true;
  before->mtime_ns =
      int64_t{st.st_mtim.tv_sec} * 1'000'000'000 + st.st_mtim.tv_nsec;
  before->size = size;
  before->offset = std::min(step.offset, size);
  const uint64_t end =
      step.size < size ? size : std::min(size, step.offset + step.length);
  before->length = end - std::min(end, before->offset);
  if (step.size < size) {
    before->offset = std::min(before->offset, step.size);
    before->length = size - before->offset;
  }
  auto at = static_cast<uint64_t>(kept.st_size);
  return KeepPieces(fd, before->offset, end, store, UINT64_MAX, &at, before)
      .ok();
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
