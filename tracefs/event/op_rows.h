// The one table of operations: a row for each request a tracer can see.
// Filters, encoder, decoders, exports and feeds go by it (docs/extending.md,
// "An operation").
//
// The numbers are part of the trace format (FORMAT.md, message ids) and of
// saved traces: add at the end, never renumber, never reuse.
#pragma once

// clang-format off

// name, number, OpFamily, the fields it carries besides those of its family,
// OpFlags, FileActivity, OpTrait
#define TRACEFS_OPS(X)                                                        \
  X(lookup, 0, kName, (), kNone, kGetAttributes, kNoTraits)                   \
  X(getattr, 1, kOpenFile, (kValid), kAt, kGetAttributes, kNoTraits)          \
  X(setattr, 2, kOpenFile,                                                    \
    (kValid, kArgMode, kNewUid, kNewGid, kNewSize, kNewAtime, kNewMtime),     \
    kNone, kSetAttributes, kMayBeExec)                                        \
  X(readlink, 3, kFile, (), kNone, kRead, kNoTraits)                          \
  X(symlink, 4, kName, (), kNone, kCreate, kNoTraits)                         \
  X(mknod, 5, kName, (kArgMode, kRdev, kUmask), kNone, kCreate, kNoTraits)    \
  X(mkdir, 6, kName, (kArgMode, kUmask), kNone, kCreate, kNoTraits)           \
  X(unlink, 7, kName, (), kNone, kDelete, kNoTraits)                          \
  X(rmdir, 8, kName, (), kNone, kDelete, kNoTraits)                           \
  X(rename, 9, kName, (kNewParentInode), kRename, kRename, kNoTraits)         \
  X(link, 10, kFile, (kNewParentInode), kNone, kCreate, kNoTraits)            \
  X(open, 11, kOpenFile, (), kOpen, kOpen, kNoTraits)                         \
  X(create, 12, kName, (kFh, kArgMode, kUmask), kOpen, kCreate, kNoTraits)    \
  X(tmpfile, 13, kUnnamed, (kFh, kArgMode, kUmask),                           \
    kOpen, kCreate, kNoTraits)                                                \
  X(read, 14, kData, (kMapped), kOpened, kRead, kNoTraits)                    \
  X(write, 15, kData, (kMapped), kOpened, kUpdate, kMayBeExec)                \
  X(flush, 16, kOpenFile, (kLockOwner), kNone, kOther, kMayBeExec)            \
  X(release, 17, kOpenFile, (), kOpened, kOther, kMayBeExec)                  \
  X(fsync, 18, kOpenFile, (), kSync, kOther, kMayBeExec)                      \
  X(opendir, 19, kDirectory, (), kOpen, kOpen, kNoTraits)                     \
  X(readdir, 20, kDirectory, (kOffset, kLength), kNone, kRead, kNoTraits)     \
  X(releasedir, 21, kDirectory, (), kOpened, kOther, kNoTraits)               \
  X(fsyncdir, 22, kDirectory, (), kSync, kOther, kNoTraits)                   \
  X(statfs, 23, kFile, (), kNone, kGetAttributes, kNoTraits)                  \
  X(setxattr, 24, kFile, (kLength), kXattr, kSetAttributes, kNoTraits)        \
  X(getxattr, 25, kFile, (kLength), kNone, kGetAttributes, kNoTraits)         \
  X(listxattr, 26, kFile, (kLength), kNone, kGetAttributes, kNoTraits)        \
  X(removexattr, 27, kFile, (), kNone, kSetAttributes, kNoTraits)             \
  X(access, 28, kFile, (kArgMode), kNone, kGetSecurity, kNoTraits)            \
  X(getlk, 29, kLock, (), kWait, kOther, kNoTraits)                           \
  X(setlk, 30, kLock, (), kWait, kOther, kMayBeExec)                          \
  X(flock, 31, kLock, (), kWait, kOther, kMayBeExec)                          \
  X(fallocate, 32, kOpenFile, (kOffset, kLength),                             \
    kFallocate, kUpdate, kNoTraits)                                           \
  X(lseek, 33, kOpenFile, (kOffset), kWhence, kOther, kNoTraits)              \
  X(copy_file_range, 34, kData,                                               \
    (kFhOut, kInodeOut, kOffsetOut, kDataLeftOut),                            \
    kBits, kUpdate, kNoTraits)                                                \
  X(ioctl, 35, kOpenFile, (kCommand, kLength), kBits, kOther, kNoTraits)      \
  X(poll, 36, kOpenFile, (), kPoll, kOther, kNoTraits)                        \
  X(statx, 37, kOpenFile, (kValid), kAt, kGetAttributes, kNoTraits)

// clang-format on
