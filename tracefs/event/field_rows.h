// The one table of fields: a row for everything that can be known about an
// operation. Filters, encoder, decoders, trace header, anonymiser, text and
// JSON Lines go by it (docs/extending.md, "A field").
//
// The order is that of the enumerators and of the arguments in a message. A new
// number comes last among the numbers, a new text before kData.
#pragma once

// clang-format off

// Numbers; each has a slot in Event::value.
//
// enumerator, predicate ("" = filters cannot name it), name in the trace,
// argument id, bytes in the trace, FieldType, FieldSource,
// the STR_ flags that choose it (verbosity.h), DataClass (data_class.h),
// TextStyle, JSON key
#define TRACEFS_NUMERIC_FIELDS(X)                                             \
  X(kTime, "", "ARG_TIME_NS", 1, 8, kTimeNs, kRequest,                        \
    kStrTsNsec, kTime, kOwnPlace, "ts")                                       \
  X(kLatency, "latency", "ARG_DURATION_NS", 2, 8, kDurationNs, kResult,       \
    kStrDuration, kDuration, kOwnPlace, "dur")                                \
  X(kTid, "ctid", "ARG_TID", 3, 4, kUnsigned, kRequest,                       \
    kStrTid, kPid, kOwnPlace, "tid")                                          \
  X(kPid, "cpid", "ARG_PID", 4, 4, kUnsigned, kCaller,                        \
    kStrPid, kPid, kOwnPlace, "pid")                                          \
  X(kPpid, "cppid", "ARG_PPID", 5, 4, kUnsigned, kCaller,                     \
    kStrPpid, kPid, kNotShown, "ppid")                                        \
  X(kSid, "csid", "ARG_SID", 6, 4, kUnsigned, kCaller,                        \
    kStrSid, kPid, kNotShown, "sid")                                          \
  X(kPgid, "cpgid", "ARG_PGID", 7, 4, kUnsigned, kCaller,                     \
    kStrPgid, kPid, kNotShown, "pgid")                                        \
  X(kUid, "cuid", "ARG_UID", 24, 4, kUser, kRequest,                          \
    kStrUid, kUid, kOwnPlace, "uid")                                          \
  X(kGid, "cgid", "ARG_GID", 25, 4, kGroup, kRequest,                         \
    kStrGid, kGid, kNotShown, "gid")                                          \
  X(kInferred, "", "ARG_INFERRED", 8, 1, kUnsigned, kRequest,                 \
    kStrCaller, kRequest, kOwnPlace, "inferred")                              \
  X(kSyscall, "syscall", "ARG_SYSCALL", 9, 4, kUnsigned, kSyscall,            \
    kStrSyscall, kRequest, kSyscall, "syscall")                               \
  X(kInode, "inode", "ARG_INODE", 10, 8, kUnsigned, kRequest,                 \
    kStrInode, kInode, kOwnPlace, "ino")                                      \
  X(kParentInode, "", "ARG_PARENT_INODE", 11, 8, kUnsigned, kRequest,         \
    kStrDentry, kInode, kNotShown, "parent_ino")                              \
  X(kNewParentInode, "", "ARG_NEW_PARENT_INODE", 12, 8, kUnsigned, kRequest,  \
    kStrDentry, kInode, kNotShown, "new_parent_ino")                          \
  X(kFh, "", "ARG_FH", 13, 8, kUnsigned, kRequest,                            \
    kStrFile, kHandle, kDecimal, "fh")                                        \
  X(kFhOut, "", "ARG_FH_OUT", 14, 8, kUnsigned, kRequest,                     \
    kStrFile, kHandle, kDecimal, "fh_out")                                    \
  X(kInodeOut, "inode2", "ARG_INODE_OUT", 15, 8, kUnsigned, kRequest,         \
    kStrInode, kInode, kDecimal, "ino_out")                                   \
  X(kOffset, "offset", "ARG_OFFSET", 16, 8, kUnsigned, kRequest,              \
    kStrArgs, kIo, kSigned, "offset")                                         \
  X(kOffsetOut, "", "ARG_OFFSET_OUT", 17, 8, kUnsigned, kRequest,             \
    kStrArgs, kIo, kDecimal, "offset_out")                                    \
  X(kLength, "length", "ARG_LENGTH", 18, 8, kUnsigned, kRequest,              \
    kStrArgs, kIo, kDecimal, "size")                                          \
  X(kFlags, "flags", "ARG_FLAGS", 19, 4, kOpenFlags, kRequest,                \
    kStrFile, kRequest, kFlags, "flags")                                      \
  X(kArgMode, "new_mode", "ARG_MODE", 20, 4, kOctal, kRequest,                \
    kStrArgs, kMode, kAccessMode, "mode")                                     \
  X(kUmask, "", "ARG_UMASK", 21, 4, kOctal, kRequest,                         \
    kStrArgs, kMode, kOctal, "umask")                                         \
  X(kRdev, "", "ARG_RDEV", 22, 8, kHex, kRequest,                             \
    kStrArgs, kDevice, kDevice, "rdev")                                       \
  X(kValid, "sets", "ARG_VALID", 23, 4, kHex, kRequest,                       \
    kStrArgs, kRequest, kSetMask, "valid")                                    \
  X(kNewUid, "new_uid", "ARG_NEW_UID", 26, 4, kUser, kRequest,                \
    kStrArgs, kUid, kDecimal, "new_uid")                                      \
  X(kNewGid, "new_gid", "ARG_NEW_GID", 27, 4, kGroup, kRequest,               \
    kStrArgs, kGid, kDecimal, "new_gid")                                      \
  X(kNewSize, "new_size", "ARG_NEW_SIZE", 28, 8, kUnsigned, kRequest,         \
    kStrArgs, kSize, kDecimal, "new_size")                                    \
  X(kNewAtime, "", "ARG_NEW_ATIME_NS", 29, 8, kSigned, kRequest,              \
    kStrArgs, kClock, kTimestamp, "new_atime")                                \
  X(kNewMtime, "", "ARG_NEW_MTIME_NS", 30, 8, kSigned, kRequest,              \
    kStrArgs, kClock, kTimestamp, "new_mtime")                                \
  X(kCommand, "", "ARG_COMMAND", 31, 4, kHex, kRequest,                       \
    kStrArgs, kRequest, kHex, "command")                                      \
  X(kLockType, "", "ARG_LOCK_TYPE", 32, 4, kUnsigned, kRequest,               \
    kStrArgs, kRequest, kLockType, "lock_type")                               \
  X(kLockOwner, "", "ARG_LOCK_OWNER", 33, 8, kHex, kRequest,                  \
    kStrArgs, kLockOwner, kLockOwner, "lock_owner")                           \
  X(kLockPid, "", "ARG_LOCK_PID", 34, 4, kUnsigned, kRequest,                 \
    kStrArgs, kPid, kDecimal, "lock_pid")                                     \
  X(kResult, "result", "ARG_RESULT", 40, 8, kSigned, kResult,                 \
    kStrRetval, kResult, kOwnPlace, "result")                                 \
  X(kErrno, "errno", "ARG_ERRNO", 41, 4, kErrno, kResult,                     \
    kStrRetval, kRequest, kOwnPlace, "errno")                                 \
  X(kMode, "mode", "ARG_INODE_MODE", 42, 4, kOctal, kAttributes,              \
    kStrInode, kMode, kOwnPlace, "fmode")                                     \
  X(kNlink, "nlink", "ARG_INODE_NLINK", 43, 4, kUnsigned, kAttributes,        \
    kStrInode, kMode, kOwnPlace, "nlink")                                     \
  X(kSize, "size", "ARG_INODE_SIZE", 44, 8, kUnsigned, kAttributes,           \
    kStrInode, kSize, kOwnPlace, "fsize")                                     \
  X(kFuid, "fuid", "ARG_INODE_UID", 45, 4, kUser, kAttributes,                \
    kStrInode, kUid, kOwnPlace, "fuid")                                       \
  X(kFgid, "fgid", "ARG_INODE_GID", 46, 4, kGroup, kAttributes,               \
    kStrInode, kGid, kOwnPlace, "fgid")                                       \
  X(kMtime, "", "ARG_INODE_MTIME_NS", 47, 8, kSigned, kAttributes,            \
    kStrInode, kClock, kNotShown, "mtime")                                    \
  X(kType, "type", "ARG_INODE_TYPE", 48, 1, kFileType, kName,                 \
    kStrInode, kMode, kNotShown, "type")                                      \
  X(kDataChecksum, "", "ARG_DATA_CRC32C", 49, 4, kHex, kResult,               \
    kStrDataCksum, kChecksum, kHex, "data_crc")                               \
  X(kMapped, "mapped", "ARG_MAPPED", 50, 1, kUnsigned, kRequest,              \
    kStrArgs, kRequest, kFlag, "mapped")                                      \
  X(kDataLeftOut, "", "ARG_DATA_LEFT_OUT", 51, 1, kUnsigned, kRequest,        \
    kStrData | kStrDataCksum, kRequest, kFlag, "data_left_out")               \
  X(kKept, "", "ARG_KEPT", 52, 8, kUnsigned, kResult,                         \
    kStrKeep, kHandle, kDecimal, "kept")                                      \
  X(kKeptAt, "", "ARG_KEPT_AT", 53, 8, kUnsigned, kResult,                    \
    kStrKeep, kIo, kNotShown, "kept_at")                                      \
  X(kKeptOffset, "", "ARG_KEPT_OFFSET", 54, 8, kUnsigned, kResult,            \
    kStrKeep, kIo, kNotShown, "kept_offset")                                  \
  X(kKeptLength, "", "ARG_KEPT_LENGTH", 55, 8, kUnsigned, kResult,            \
    kStrKeep, kIo, kDecimal, "kept_size")                                     \
  X(kKeptChecksum, "", "ARG_KEPT_CRC32C", 56, 4, kHex, kResult,               \
    kStrKeep, kChecksum, kNotShown, "kept_crc")                               \
  X(kKeptChanged, "", "ARG_KEPT_CHANGED_NS", 57, 8, kSigned, kResult,         \
    kStrKeep, kClock, kNotShown, "kept_changed")                              \
  X(kKeptMtime, "", "ARG_KEPT_MTIME_NS", 58, 8, kSigned, kResult,             \
    kStrKeep, kClock, kNotShown, "kept_mtime")                                \
  X(kKeptFrom, "", "ARG_KEPT_FROM", 59, 8, kUnsigned, kResult,                \
    kStrKeep, kHandle, kDecimal, "kept_from")                                 \
  X(kNotKept, "", "ARG_NOT_KEPT", 60, 4, kErrno, kResult,                     \
    kStrKeep, kRequest, kDecimal, "not_kept")                                 \
  X(kExtentsDevice, "", "ARG_EXTENTS_DEVICE", 61, 8, kHex, kResult,           \
    kStrExtents, kDevice, kDevice, "extents_dev")                             \
  X(kExtentsLeftOut, "", "ARG_EXTENTS_LEFT_OUT", 62, 8, kUnsigned, kResult,   \
    kStrExtents, kIo, kDecimal, "extents_left_out")                           \
  X(kExtentsErrno, "", "ARG_EXTENTS_ERRNO", 63, 4, kErrno, kResult,           \
    kStrExtents, kRequest, kDecimal, "extents_errno")

// Texts. In place of the width: DataShape. Those that come with a request have
// a member of Event each (kRequestTexts in event.h). Argument id 0: in no trace.
#define TRACEFS_TEXT_FIELDS(X)                                                \
  X(kName, "name", "ARG_NAME", 64, kComponent, kName, kName,                  \
    kStrFname | kStrPath, kName, kOwnPlace, "name")                           \
  X(kNewName, "", "ARG_NEW_NAME", 65, kComponent, kName, kRequest,            \
    kStrFname | kStrPath, kName, kOwnPlace, "new_name")                       \
  X(kExt, "ext", "ARG_EXT", 66, kExtension, kName, kName,                     \
    kStrFext, kName, kNotShown, "ext")                                        \
  X(kPath, "path", "ARG_PATH", 67, kPath, kText, kPath,                       \
    kStrPath, kName, kOwnPlace, "path")                                       \
  X(kFirstPath, "path1", "", 0, kPath, kText, kPath,                          \
    kStrNone, kName, kNotShown, "path1")                                      \
  X(kNewPath, "path2", "ARG_NEW_PATH", 68, kPath, kText, kPath,               \
    kStrPath, kName, kOwnPlace, "path2")                                      \
  X(kTarget, "", "ARG_TARGET", 69, kPath, kText, kRequest,                    \
    kStrArgs, kName, kOwnPlace, "target")                                     \
  X(kXattrName, "", "ARG_XATTR_NAME", 70, kXattr, kText, kRequest,            \
    kStrArgs, kXattr, kWord, "xattr")                                         \
  X(kComm, "cname", "ARG_COMM", 71, kWord, kText, kCaller,                    \
    kStrPname, kComm, kOwnPlace, "comm")                                      \
  X(kExe, "cexe", "ARG_EXE", 72, kPath, kText, kDetails,                      \
    kStrExe, kExe, kWord, "exe")                                              \
  X(kCgroup, "ccgroup", "ARG_CGROUP", 73, kPath, kText, kDetails,             \
    kStrCgroup, kCgroup, kWord, "cgroup")                                     \
  X(kTty, "ctty", "ARG_TTY", 75, kWord, kText, kDetails,                      \
    kStrTty, kComm, kWord, "tty")                                             \
  X(kCmdline, "cargs", "ARG_CMDLINE", 76, kWord, kText, kDetails,             \
    kStrCmdline, kData, kWord, "cmdline")                                     \
  X(kAncestor, "descendant", "ARG_ANCESTOR", 77, kWord, kText, kAncestors,    \
    kStrNone, kComm, kNotShown, "ancestor")                                   \
  X(kExtentsOf, "", "ARG_EXTENTS_OF", 78, kWord, kText, kResult,              \
    kStrExtents, kRequest, kWord, "extents_of")                               \
  X(kExtents, "", "ARG_EXTENTS", 79, kWord, kText, kResult,                   \
    kStrExtents, kData, kWord, "extents")                                     \
  X(kData, "", "ARG_DATA", 74, kBytes, kBytes, kRequest,                      \
    kStrData, kData, kBytes, "data")

// clang-format on
