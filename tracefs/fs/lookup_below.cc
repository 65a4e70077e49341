// FileSystem: what names lead to, and how it is held.
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "tracefs/fs/file_system.h"

namespace tracefs {
namespace {

// What a name leads to (O_PATH). EAGAIN: this cannot be answered without
// waiting, and `may_wait` is false.
int OpenPath(int dir, const char* name, bool may_wait) {
  constexpr int kFlags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  if (may_wait) return ::openat(dir, name, kFlags);
  open_how how{};
  how.flags = kFlags;
  how.resolve = RESOLVE_CACHED;
  return static_cast<int>(::syscall(SYS_openat2, dir, name, &how, sizeof how));
}

}  // namespace

// The entry of a key, with one lookup counted, if it represents the file that
// `dir` and `name` lead to. With "" for a name that is `dir` itself, and an
// entry that does not represent it gives its place up.
Inode* FileSystem::AcquireSame(int dir, const char* name,
                               const struct stat& st) {
  Inode* inode = inodes_.Acquire(st.st_dev, st.st_ino);
  if (inode == nullptr || inode->pinned()) return inode;
  // Not held by a descriptor: the number may have been given to a new file.
  if (CompactHandle::Of(dir, name) == inode->handle()) return inode;
  if (name[0] == '\0') {
    inodes_.Supersede(inode);
  } else {
    inodes_.Release(inode, 1);  // the name may mean another one by now
  }
  return nullptr;
}

// Two calls are enough, and a store that has to ask a server for each should
// see no more. So by the name: the file that it leads to. One call gives the
// attributes of a known file.
Inode* FileSystem::Lookup(Inode& parent, const char* name, struct stat* st,
                          bool may_wait) {
  // Who revalidates a name holds no lock of its directory: a rename may come
  // between looking and noting, and then this would note the old name again.
  constexpr int kMostTries = 16;
  for (int tries = 1;; ++tries) {
    const uint32_t seen_at = parent.names_gone();
    Inode* const inode = LookBelow(parent, name, st, may_wait);
    if (inode == nullptr ||
        inodes_.Named(
            inode, &parent, name,
            tries < kMostTries ? std::optional(seen_at) : std::nullopt)) {
      return inode;
    }
    inodes_.Release(inode, 1);
  }
}

// What a name leads to, with one lookup counted; nothing is noted of the name.
Inode* FileSystem::LookBelow(Inode& parent, const char* name, struct stat* st,
                             bool may_wait) {
  const BackingFd dir = FdOf(parent);
  const bool by_attributes =
      !parent.finds_new() && !may_hang_below_ && may_wait;
  Inode* inode = nullptr;
  if (by_attributes) {
    if (::fstatat(dir.get(), name, st, AT_SYMLINK_NOFOLLOW) != 0) {
      return nullptr;
    }
    inode = AcquireSame(dir.get(), name, *st);
  }
  UniqueFd fd;
  if (inode == nullptr) {
    fd.Reset(OpenPath(dir.get(), name, may_wait));
    // The name may mean another file by now: believe the descriptor.
    if (!fd || ::fstatat(fd.get(), "", st, AT_EMPTY_PATH) != 0) return nullptr;
    inode = AcquireSame(fd.get(), "", *st);
  }
  parent.NoteLookup(inode == nullptr);
  return HoldToName(inode, std::move(fd), *st);
}

Inode* FileSystem::EnterMade(Inode& parent, const char* name, struct stat* st) {
  const BackingFd dir = FdOf(parent);
  UniqueFd fd(::openat(dir.get(), name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!fd || ::fstatat(fd.get(), "", st, AT_EMPTY_PATH) != 0) return nullptr;
  Inode* const inode =
      HoldToName(AcquireSame(fd.get(), "", *st), std::move(fd), *st);
  inodes_.Named(inode, &parent, name);
  return inode;
}

// `inode`, or if it is null a new one of the file behind `fd`, which is about
// to be given a name.
Inode* FileSystem::HoldToName(Inode* inode, UniqueFd fd,
                              const struct stat& st) {
  if (inode == nullptr) {
    inode = inodes_.AcquireOrInsert(inodes_.Hold(std::move(fd), true), st);
  }
  if (HasSeveralNames(st)) inode->ExpectSeveralNames();
  return inode;
}

Inode* FileSystem::Enter(Inode& parent, const char* name, int fd,
                         struct stat* st) {
  // The server described it when it made it.
  const int known = may_hang_below_ ? AT_STATX_DONT_SYNC : 0;
  if (::fstatat(fd, "", st, AT_EMPTY_PATH | known) != 0) return nullptr;
  Inode* inode = AcquireSame(fd, "", *st);
  if (inode == nullptr) {
    std::optional<BackingFile> file = HoldOpen(fd, name != nullptr);
    if (!file) return nullptr;
    inode = inodes_.AcquireOrInsert(std::move(*file), *st);
  }
  if (name != nullptr) inodes_.Named(inode, &parent, name);
  return inode;
}

// How to hold a regular file that is open as `fd`: by a descriptor opened
// through that one and not by the name, which may have been replaced. It serves
// all later requests, and the kernel (BackingIdOf).
std::optional<BackingFile> FileSystem::HoldOpen(int fd, bool named) {
  std::array<char, 16> number;
  *std::to_chars(number.data(), number.data() + number.size() - 1, fd).ptr =
      '\0';
  UniqueFd path(
      ::openat(options_.proc_self_fd, number.data(), O_PATH | O_CLOEXEC));
  if (!path) return std::nullopt;
  return inodes_.Hold(std::move(path), named);
}

}  // namespace tracefs
