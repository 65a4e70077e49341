// The operations a tracer can see: one file-system request at the mount each.
//
// The numbers are part of the trace format (FORMAT.md, message ids) and of
// saved traces: add at the end, never renumber, never reuse.
#ifndef TRACEFS_EVENT_OP_H_
#define TRACEFS_EVENT_OP_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tracefs {

// name, number
#define TRACEFS_OPS(X)   \
  X(lookup, 0)           \
  X(getattr, 1)          \
  X(setattr, 2)          \
  X(readlink, 3)         \
  X(symlink, 4)          \
  X(mknod, 5)            \
  X(mkdir, 6)            \
  X(unlink, 7)           \
  X(rmdir, 8)            \
  X(rename, 9)           \
  X(link, 10)            \
  X(open, 11)            \
  X(create, 12)          \
  X(tmpfile, 13)         \
  X(read, 14)            \
  X(write, 15)           \
  X(flush, 16)           \
  X(release, 17)         \
  X(fsync, 18)           \
  X(opendir, 19)         \
  X(readdir, 20)         \
  X(releasedir, 21)      \
  X(fsyncdir, 22)        \
  X(statfs, 23)          \
  X(setxattr, 24)        \
  X(getxattr, 25)        \
  X(listxattr, 26)       \
  X(removexattr, 27)     \
  X(access, 28)          \
  X(getlk, 29)           \
  X(setlk, 30)           \
  X(flock, 31)           \
  X(fallocate, 32)       \
  X(lseek, 33)           \
  X(copy_file_range, 34) \
  X(ioctl, 35)           \
  X(poll, 36)            \
  X(statx, 37)

// Enumerators are spelled as in configs and traces, with a trailing underscore
// because several of the names are also functions or macros of libc.
enum class Op : uint8_t {
#define TRACEFS_OP_ENUMERATOR(name, number) name##_ = number,
  TRACEFS_OPS(TRACEFS_OP_ENUMERATOR)
#undef TRACEFS_OP_ENUMERATOR
};

#define TRACEFS_OP_PLUS_ONE(name, number) +1
inline constexpr size_t kOpCount = 0 TRACEFS_OPS(TRACEFS_OP_PLUS_ONE);
#undef TRACEFS_OP_PLUS_ONE

inline constexpr size_t Index(Op op) { return static_cast<size_t>(op); }

// "lookup", …; the text is static.
std::string_view OpName(Op op);

// The operation of that name, in upper or lower case; `close` is an alias of
// `release`.
std::optional<Op> OpFromName(std::string_view name);

// The operation of that number in a trace, if this version knows it.
std::optional<Op> OpFromNumber(uint64_t number);

}  // namespace tracefs

#endif  // TRACEFS_EVENT_OP_H_
