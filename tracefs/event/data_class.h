// What a value is about and what it consists of: by these an anonymiser decides
// what may be done to it.
#pragma once

#include <cstdint>

namespace tracefs {

// clang-format off

// enumerator; name in policies; domain: values of one share a key, and tokens;
// what it is
#define TRACEFS_DATA_CLASSES(X)                                               \
  X(kStructure, "structure", "",                                              \
    "ids, counts and names that hold the trace together")                     \
  X(kUid, "uid", "uid", "users: of callers, owners and chown targets")        \
  X(kGid, "gid", "gid", "groups: of callers, owners and chown targets")       \
  X(kPid, "pid", "pid", "processes, threads, sessions, process groups")       \
  X(kInode, "inode", "inode", "inode numbers")                                \
  X(kHandle, "handle", "handle", "file handles")                              \
  X(kLockOwner, "lock-owner", "lock-owner", "owners of locks")                \
  X(kName, "name", "name", "file names, paths, extensions, symlink targets")  \
  X(kComm, "comm", "process", "names of processes")                           \
  X(kExe, "exe", "process", "executables of processes")                       \
  X(kCgroup, "cgroup", "cgroup", "control groups")                            \
  X(kXattr, "xattr", "xattr", "names of extended attributes")                 \
  X(kData, "data", "data",                                                    \
    "bytes read and written, arguments and environments of programs")         \
  X(kChecksum, "checksum", "checksum", "checksums of bytes read and written") \
  X(kTime, "time", "time", "begin times, on the monotonic clock")             \
  X(kDuration, "duration", "duration", "how long operations took")            \
  X(kClock, "clock", "clock", "times of day: of the trace, of files")         \
  X(kSize, "size", "size", "sizes of files")                                  \
  X(kIo, "io", "io", "offsets and lengths of transfers and locks")            \
  X(kResult, "result", "result", "results")                                   \
  X(kMode, "mode", "mode", "types, permissions and link counts of files")     \
  X(kDevice, "device", "device", "device numbers")                            \
  X(kRequest, "request", "request", "flags, commands, error numbers")         \
  X(kTotals, "totals", "totals",                                              \
    "what was counted: losses, totals, aggregates; end reason")

// clang-format on

enum class DataClass : uint8_t {
#define TRACEFS_DATA_CLASS_ENUMERATOR(id, ...) id,
  TRACEFS_DATA_CLASSES(TRACEFS_DATA_CLASS_ENUMERATOR)
#undef TRACEFS_DATA_CLASS_ENUMERATOR
};

enum class DataShape : uint8_t {
  kNumber,     // constant width
  kPath,       // components between '/'
  kComponent,  // one name
  kExtension,  // the extension of a name
  kWord,       // text without inner structure
  kXattr,      // namespace '.' name
  kBytes,      // anything
  kProperty,   // key '=' value: the rule is that of the key
  kStructure,  // holds the trace together; can only be kept
};

}  // namespace tracefs
