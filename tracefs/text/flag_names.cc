#include "tracefs/text/flag_names.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstring>
#include <span>

#include "tracefs/base/choice.h"
#include "tracefs/event/set_attributes.h"
#include "tracefs/text/put_text.h"

namespace tracefs {
namespace {

struct FlagName {
  uint32_t bits;
  std::string_view name;
};

// Wider masks first: O_SYNC holds O_DSYNC, O_TMPFILE holds O_DIRECTORY.
constexpr FlagName kOpenFlags[] = {
    {O_SYNC, "O_SYNC"},         {O_TMPFILE, "O_TMPFILE"},
    {O_CREAT, "O_CREAT"},       {O_EXCL, "O_EXCL"},
    {O_NOCTTY, "O_NOCTTY"},     {O_TRUNC, "O_TRUNC"},
    {O_APPEND, "O_APPEND"},     {O_NONBLOCK, "O_NONBLOCK"},
    {O_DSYNC, "O_DSYNC"},       {O_ASYNC, "O_ASYNC"},
    {O_DIRECT, "O_DIRECT"},     {O_DIRECTORY, "O_DIRECTORY"},
    {O_NOFOLLOW, "O_NOFOLLOW"}, {O_NOATIME, "O_NOATIME"},
    {O_CLOEXEC, "O_CLOEXEC"},   {O_PATH, "O_PATH"},
};

// O_LARGEFILE as the kernel has it (libc's is 0). 64-bit kernels add it to
// every open, so it says nothing and is left out.
constexpr uint32_t kLargeFile = 0100000;

constexpr FlagName kRenameFlags[] = {
    {1, "RENAME_NOREPLACE"}, {2, "RENAME_EXCHANGE"}, {4, "RENAME_WHITEOUT"}};

constexpr FlagName kXattrFlags[] = {{1, "XATTR_CREATE"}, {2, "XATTR_REPLACE"}};

constexpr FlagName kFallocateFlags[] = {
    {0x01, "FALLOC_FL_KEEP_SIZE"},     {0x02, "FALLOC_FL_PUNCH_HOLE"},
    {0x04, "FALLOC_FL_NO_HIDE_STALE"}, {0x08, "FALLOC_FL_COLLAPSE_RANGE"},
    {0x10, "FALLOC_FL_ZERO_RANGE"},    {0x20, "FALLOC_FL_INSERT_RANGE"},
    {0x40, "FALLOC_FL_UNSHARE_RANGE"},
};

constexpr FlagName kAtFlags[] = {
    {AT_SYMLINK_NOFOLLOW, "AT_SYMLINK_NOFOLLOW"},
    {AT_NO_AUTOMOUNT, "AT_NO_AUTOMOUNT"},
    {AT_EMPTY_PATH, "AT_EMPTY_PATH"},
    {0x2000, "AT_STATX_FORCE_SYNC"},
    {0x4000, "AT_STATX_DONT_SYNC"},
};

constexpr FlagName kPollEvents[] = {
    {POLLIN, "POLLIN"},    {POLLPRI, "POLLPRI"},  {POLLOUT, "POLLOUT"},
    {POLLERR, "POLLERR"},  {POLLHUP, "POLLHUP"},  {POLLNVAL, "POLLNVAL"},
    {0x040, "POLLRDNORM"}, {0x080, "POLLRDBAND"}, {0x100, "POLLWRNORM"},
    {0x200, "POLLWRBAND"}, {0x2000, "POLLRDHUP"},
};

constexpr FlagName kFsyncFlags[] = {{1, "data"}};
constexpr FlagName kLockFlags[] = {{1, "wait"}};

constexpr FlagName kAccessModes[] = {
    {R_OK, "R_OK"}, {W_OK, "W_OK"}, {X_OK, "X_OK"}};

char* PutHex(char* out, uint32_t value) {
  out = PutText(out, "0x");
  return std::to_chars(out, out + 8, value, 16).ptr;
}

// The names of the bits, joined by '|' to what is at `out` already if `joined`.
template <typename Names>
char* PutBits(char* out, const Names& names, uint32_t bits,
              bool joined = false) {
  for (const auto& flag : names) {
    if ((bits & flag.bits) != flag.bits) continue;
    bits &= ~flag.bits;
    if (joined) *out++ = '|';
    out = PutText(out, flag.name);
    joined = true;
  }
  if (bits != 0) {
    if (joined) *out++ = '|';
    return PutHex(out, bits);
  }
  if (!joined) *out++ = '0';
  return out;
}

char* PutOpenFlags(char* out, uint32_t flags) {
  constexpr std::array<std::string_view, 4> kAccess = {"O_RDONLY", "O_WRONLY",
                                                       "O_RDWR", "O_ACCMODE"};
  out = PutText(out, kAccess[flags & O_ACCMODE]);
  return PutBits(out, kOpenFlags, flags & ~(O_ACCMODE | kLargeFile),
                 /*joined=*/true);
}

char* PutWhence(char* out, uint32_t whence) {
  constexpr std::array<std::string_view, 5> kNames = {
      "SEEK_SET", "SEEK_CUR", "SEEK_END", "SEEK_DATA", "SEEK_HOLE"};
  return whence < kNames.size() ? PutText(out, kNames[whence])
                                : PutHex(out, whence);
}

}  // namespace

char* PutFlags(char* out, Op op, uint32_t flags) {
  switch (Info(op).flags) {
    case OpFlags::kRename:
      return PutBits(out, kRenameFlags, flags);
    case OpFlags::kXattr:
      return PutBits(out, kXattrFlags, flags);
    case OpFlags::kFallocate:
      return PutBits(out, kFallocateFlags, flags);
    case OpFlags::kWhence:
      return PutWhence(out, flags);
    case OpFlags::kSync:
      return PutBits(out, kFsyncFlags, flags);
    case OpFlags::kWait:
      return PutBits(out, kLockFlags, flags);
    case OpFlags::kAt:
      return PutBits(out, kAtFlags, flags);
    case OpFlags::kPoll:
      return PutBits(out, kPollEvents, flags);
    case OpFlags::kBits:
      return PutBits(out, std::span<const FlagName>(), flags);
    case OpFlags::kNone:
    case OpFlags::kOpen:
    case OpFlags::kOpened:
      break;
  }
  return PutOpenFlags(out, flags);
}

std::string FlagsText(Op op, uint32_t flags) {
  std::array<char, kMaxFlagText> text;
  return {text.data(), PutFlags(text.data(), op, flags)};
}

uint32_t NamedOpenFlags(uint32_t flags) {
  uint32_t named = O_ACCMODE;
  for (const FlagName& flag : kOpenFlags) named |= flag.bits;
  return flags & named;
}

char* PutAccessMode(char* out, uint32_t mode) {
  return mode == F_OK ? PutText(out, "F_OK") : PutBits(out, kAccessModes, mode);
}

char* PutSetattrValid(char* out, uint32_t valid) {
  return PutBits(out, kSettableAttributes, valid);
}

std::string_view LockTypeName(uint64_t type) {
  static constexpr Choice<uint64_t> kNames[] = {
      {"F_RDLCK", F_RDLCK},
      {"F_WRLCK", F_WRLCK},
      {"F_UNLCK", F_UNLCK},
  };
  return WordOf(kNames, type);
}

std::string_view ErrnoName(uint64_t number) {
  if (number == 0 || number > 4095) return {};
  const char* const name = ::strerrorname_np(static_cast<int>(number));
  return name == nullptr ? std::string_view() : name;
}

std::string_view FileTypeName(uint64_t type) {
  static constexpr Choice<uint64_t> kNames[] = {
      {"fifo", S_IFIFO},  {"char", S_IFCHR}, {"dir", S_IFDIR},
      {"block", S_IFBLK}, {"file", S_IFREG}, {"link", S_IFLNK},
      {"sock", S_IFSOCK},
  };
  return WordOf(kNames, type << 12);
}

char* PutModeLetters(char* out, uint32_t mode) {
  switch (mode & S_IFMT) {
    case S_IFIFO:
      *out++ = 'p';
      break;
    case S_IFCHR:
      *out++ = 'c';
      break;
    case S_IFDIR:
      *out++ = 'd';
      break;
    case S_IFBLK:
      *out++ = 'b';
      break;
    case S_IFREG:
      *out++ = '-';
      break;
    case S_IFLNK:
      *out++ = 'l';
      break;
    case S_IFSOCK:
      *out++ = 's';
      break;
    default:
      *out++ = '?';
  }
  const auto triple = [&](int shift, bool special, char letter) {
    const uint32_t bits = mode >> shift;
    *out++ = bits & 4 ? 'r' : '-';
    *out++ = bits & 2 ? 'w' : '-';
    const bool x = (bits & 1) != 0;
    *out++ = special ? static_cast<char>(x ? letter : letter - 'a' + 'A')
             : x     ? 'x'
                     : '-';
  };
  triple(6, mode & S_ISUID, 's');
  triple(3, mode & S_ISGID, 's');
  triple(0, mode & S_ISVTX, 't');
  return out;
}

}  // namespace tracefs
