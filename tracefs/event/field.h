// The one table of fields: everything that can be known about an operation,
// with its name in filters, in traces and in JSON Lines, its type, and what it
// costs to fetch. Filter, encoder, trace header and decoders all read this
// table; a new field is one new row at its end.
#ifndef TRACEFS_EVENT_FIELD_H_
#define TRACEFS_EVENT_FIELD_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "tracefs/event/op.h"

namespace tracefs {

// How a field's value is to be read, compared and printed.
enum class FieldType : uint8_t {
  kUnsigned,   // plain number
  kSigned,     // two's complement
  kHex,        // identifiers and masks that mean nothing in decimal
  kOctal,      // permission and file-type bits
  kOpenFlags,  // O_… bits; other ops print them by their own names
  kTimeNs,     // nanoseconds of CLOCK_MONOTONIC
  kDurationNs,
  kErrno,     // errno number, 0 for success
  kUser,      // uid; names allowed in filters
  kGroup,     // gid; names allowed in filters
  kFileType,  // S_IFMT part of st_mode, shifted right by 12 (a d_type)
  kOp,        // Op number
  kName,      // text: bytes without '/' or NUL
  kText,      // text: bytes without NUL
  kBytes,     // anything
};

// Where a field comes from; later sources cost more. A filter asks for cheap
// ones first.
enum class FieldSource : uint8_t {
  kRequest,     // in the request itself: free
  kName,        // cached with the inode: one load
  kResult,      // known once the operation is done: free, but late
  kCaller,      // process cache; a few microseconds on a miss
  kAttributes,  // one fstat of the backing file where the reply had none
  kPath,        // a walk up the inode table
  kHelper,      // needs an optional helper (system-call numbers, cgroups)
};

// enumerator, predicate name ("" = not a predicate), name in the trace,
// argument id, bytes in the trace (0 = variable), type, source, JSON key.
// Numeric fields; each has a slot in Event::value.
#define TRACEFS_NUMERIC_FIELDS(X)                                              \
  X(kTime, "", "ARG_TIME_NS", 1, 8, kTimeNs, kRequest, "ts")                   \
  X(kLatency, "latency", "ARG_DURATION_NS", 2, 8, kDurationNs, kResult, "dur") \
  X(kTid, "ctid", "ARG_TID", 3, 4, kUnsigned, kRequest, "tid")                 \
  X(kPid, "cpid", "ARG_PID", 4, 4, kUnsigned, kCaller, "pid")                  \
  X(kPpid, "", "ARG_PPID", 5, 4, kUnsigned, kCaller, "ppid")                   \
  X(kSid, "csid", "ARG_SID", 6, 4, kUnsigned, kCaller, "sid")                  \
  X(kPgid, "cpgid", "ARG_PGID", 7, 4, kUnsigned, kCaller, "pgid")              \
  X(kUid, "cuid", "ARG_UID", 24, 4, kUser, kRequest, "uid")                    \
  X(kGid, "cgid", "ARG_GID", 25, 4, kGroup, kRequest, "gid")                   \
  X(kInferred, "", "ARG_INFERRED", 8, 1, kUnsigned, kRequest, "inferred")      \
  X(kSyscall, "syscall", "ARG_SYSCALL", 9, 4, kUnsigned, kHelper, "syscall")   \
  X(kInode, "inode", "ARG_INODE", 10, 8, kUnsigned, kRequest, "ino")           \
  X(kParentInode, "", "ARG_PARENT_INODE", 11, 8, kUnsigned, kRequest,          \
    "parent_ino")                                                              \
  X(kNewParentInode, "", "ARG_NEW_PARENT_INODE", 12, 8, kUnsigned, kRequest,   \
    "new_parent_ino")                                                          \
  X(kFh, "", "ARG_FH", 13, 8, kUnsigned, kRequest, "fh")                       \
  X(kFhOut, "", "ARG_FH_OUT", 14, 8, kUnsigned, kRequest, "fh_out")            \
  X(kInodeOut, "", "ARG_INODE_OUT", 15, 8, kUnsigned, kRequest, "ino_out")     \
  X(kOffset, "offset", "ARG_OFFSET", 16, 8, kUnsigned, kRequest, "offset")     \
  X(kOffsetOut, "", "ARG_OFFSET_OUT", 17, 8, kUnsigned, kRequest,              \
    "offset_out")                                                              \
  X(kLength, "length", "ARG_LENGTH", 18, 8, kUnsigned, kRequest, "size")       \
  X(kFlags, "flags", "ARG_FLAGS", 19, 4, kOpenFlags, kRequest, "flags")        \
  X(kArgMode, "", "ARG_MODE", 20, 4, kOctal, kRequest, "mode")                 \
  X(kUmask, "", "ARG_UMASK", 21, 4, kOctal, kRequest, "umask")                 \
  X(kRdev, "", "ARG_RDEV", 22, 8, kHex, kRequest, "rdev")                      \
  X(kValid, "", "ARG_VALID", 23, 4, kHex, kRequest, "valid")                   \
  X(kNewUid, "", "ARG_NEW_UID", 26, 4, kUser, kRequest, "new_uid")             \
  X(kNewGid, "", "ARG_NEW_GID", 27, 4, kGroup, kRequest, "new_gid")            \
  X(kNewSize, "", "ARG_NEW_SIZE", 28, 8, kUnsigned, kRequest, "new_size")      \
  X(kNewAtime, "", "ARG_NEW_ATIME_NS", 29, 8, kSigned, kRequest, "new_atime")  \
  X(kNewMtime, "", "ARG_NEW_MTIME_NS", 30, 8, kSigned, kRequest, "new_mtime")  \
  X(kCommand, "", "ARG_COMMAND", 31, 4, kHex, kRequest, "command")             \
  X(kLockType, "", "ARG_LOCK_TYPE", 32, 4, kUnsigned, kRequest, "lock_type")   \
  X(kLockOwner, "", "ARG_LOCK_OWNER", 33, 8, kHex, kRequest, "lock_owner")     \
  X(kLockPid, "", "ARG_LOCK_PID", 34, 4, kUnsigned, kRequest, "lock_pid")      \
  X(kResult, "result", "ARG_RESULT", 40, 8, kSigned, kResult, "result")        \
  X(kErrno, "errno", "ARG_ERRNO", 41, 4, kErrno, kResult, "errno")             \
  X(kMode, "mode", "ARG_INODE_MODE", 42, 4, kOctal, kAttributes, "fmode")      \
  X(kNlink, "nlink", "ARG_INODE_NLINK", 43, 4, kUnsigned, kAttributes,         \
    "nlink")                                                                   \
  X(kSize, "size", "ARG_INODE_SIZE", 44, 8, kUnsigned, kAttributes, "fsize")   \
  X(kFuid, "fuid", "ARG_INODE_UID", 45, 4, kUser, kAttributes, "fuid")         \
  X(kFgid, "fgid", "ARG_INODE_GID", 46, 4, kGroup, kAttributes, "fgid")        \
  X(kMtime, "", "ARG_INODE_MTIME_NS", 47, 8, kSigned, kAttributes, "mtime")    \
  X(kType, "type", "ARG_INODE_TYPE", 48, 1, kFileType, kName, "type")          \
  X(kDataChecksum, "", "ARG_DATA_CRC32C", 49, 4, kHex, kResult, "data_crc")    \
  X(kMapped, "mapped", "ARG_MAPPED", 50, 1, kUnsigned, kRequest, "mapped")

// Text fields; Event holds those of source kRequest and kResult as views, the
// others are asked for.
#define TRACEFS_TEXT_FIELDS(X)                                         \
  X(kName, "name", "ARG_NAME", 64, 0, kName, kName, "name")            \
  X(kNewName, "", "ARG_NEW_NAME", 65, 0, kName, kRequest, "new_name")  \
  X(kExt, "ext", "ARG_EXT", 66, 0, kName, kName, "ext")                \
  X(kPath, "path", "ARG_PATH", 67, 0, kText, kPath, "path")            \
  X(kNewPath, "", "ARG_NEW_PATH", 68, 0, kText, kPath, "path2")        \
  X(kTarget, "", "ARG_TARGET", 69, 0, kText, kRequest, "target")       \
  X(kXattrName, "", "ARG_XATTR_NAME", 70, 0, kText, kRequest, "xattr") \
  X(kComm, "cname", "ARG_COMM", 71, 0, kText, kCaller, "comm")         \
  X(kExe, "cexe", "ARG_EXE", 72, 0, kText, kHelper, "exe")             \
  X(kCgroup, "ccgroup", "ARG_CGROUP", 73, 0, kText, kHelper, "cgroup") \
  X(kData, "", "ARG_DATA", 74, 0, kBytes, kRequest, "data")

enum class Field : uint8_t {
#define TRACEFS_FIELD_ENUMERATOR(id, ...) id,
  TRACEFS_NUMERIC_FIELDS(TRACEFS_FIELD_ENUMERATOR)
      TRACEFS_TEXT_FIELDS(TRACEFS_FIELD_ENUMERATOR)
#undef TRACEFS_FIELD_ENUMERATOR
          kOp,  // the operation itself: the message id in a trace
};

#define TRACEFS_FIELD_PLUS_ONE(...) +1
inline constexpr size_t kNumericFieldCount =
    0 TRACEFS_NUMERIC_FIELDS(TRACEFS_FIELD_PLUS_ONE);
inline constexpr size_t kTextFieldCount =
    0 TRACEFS_TEXT_FIELDS(TRACEFS_FIELD_PLUS_ONE);
#undef TRACEFS_FIELD_PLUS_ONE
inline constexpr size_t kFieldCount = kNumericFieldCount + kTextFieldCount + 1;
static_assert(kNumericFieldCount <= 64, "Event::present has one bit a field");

inline constexpr size_t Index(Field f) { return static_cast<size_t>(f); }
inline constexpr bool IsNumeric(Field f) {
  return Index(f) < kNumericFieldCount;
}
// Numbers that are 1 or 0, and that a filter may name without a value: a trace
// holds them only where they are 1.
inline constexpr bool IsFlag(Field f) {
  return f == Field::kInferred || f == Field::kMapped;
}
// The bit of a numeric field in Event::present and in field masks.
inline constexpr uint64_t Bit(Field f) { return uint64_t{1} << Index(f); }

struct FieldInfo {
  Field field;
  std::string_view predicate;   // "" where filters cannot name it
  std::string_view trace_name;  // "ARG_UID"
  uint16_t arg_id;              // without the length bit
  uint16_t width;               // bytes of the value; 0 = variable length
  FieldType type;
  FieldSource source;
  std::string_view json_key;
};

// Every row, in Field order.
std::span<const FieldInfo, kFieldCount> Fields();
inline const FieldInfo& Info(Field f) { return Fields()[Index(f)]; }

// The row of that predicate name, in upper or lower case. What is about the
// caller ("cuid", "cname") is also known by its key in JSON Lines ("uid",
// "comm").
const FieldInfo* FieldByPredicate(std::string_view name);
// Whether two words name the same: a predicate by any of its names, or the
// same word in another case.
bool SameField(std::string_view a, std::string_view b);
// The row of that trace argument id.
const FieldInfo* FieldByArgId(uint16_t arg_id);

// Numeric fields (bits) that a request of this kind carries in itself, before
// callers, attributes and results; kName is not numeric: see HasName. A
// predicate on any other request field is false for the operation.
uint64_t RequestFields(Op op);

// True for operations on a (parent, name) pair: lookup, create, unlink, …
bool HasName(Op op);

}  // namespace tracefs

#endif  // TRACEFS_EVENT_FIELD_H_
