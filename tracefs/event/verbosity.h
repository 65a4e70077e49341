// The verbosity flags of the stream driver, a bit each: the names of the paper,
// extended. Which fields each one chooses is a column of field_rows.h; their
// names and meanings are in drivers/assembly/stream.cc.
#pragma once

#include <cstdint>

namespace tracefs {

enum StreamFlag : uint64_t {
  kStrNone = 0,  // of fields that no driver writes
  kStrPostOp = 1u << 0,
  kStrPreOp = 1u << 1,
  kStrTid = 1u << 2,
  kStrPid = 1u << 3,
  kStrPpid = 1u << 4,
  kStrSid = 1u << 5,
  kStrPgid = 1u << 6,
  kStrUid = 1u << 7,
  kStrGid = 1u << 8,
  kStrPname = 1u << 9,
  kStrTsSec = 1u << 10,
  kStrTsUsec = 1u << 11,
  kStrTsNsec = 1u << 12,
  kStrDuration = 1u << 13,
  kStrFname = 1u << 14,
  kStrFext = 1u << 15,
  kStrPath = 1u << 16,
  kStrInode = 1u << 17,
  kStrDentry = 1u << 18,
  kStrFile = 1u << 19,
  kStrArgs = 1u << 20,
  kStrRetval = 1u << 21,
  kStrData = 1u << 22,
  kStrDataCksum = 1u << 23,
  kStrAttr = 1u << 24,
  kStrProcessRecords = 1u << 25,
  kStrEnvironment = 1u << 26,
  kStrSyscall = 1u << 27,
  kStrExe = 1u << 28,
  kStrCgroup = 1u << 29,
  kStrTty = 1u << 30,
  kStrCmdline = 1u << 31,
  kStrReplay = uint64_t{1} << 32,
  kStrKeep = uint64_t{1} << 34,  // 33: drivers/assembly/stream.cc
  kStrExtents = uint64_t{1} << 35,
};

// What the process definition holds, and what names the caller at all.
inline constexpr uint64_t kStrProcess =
    kStrPid | kStrPpid | kStrSid | kStrPgid | kStrPname;
// What is found out aside (CallerDetails), and stands there, too.
inline constexpr uint64_t kStrDetails =
    kStrExe | kStrCgroup | kStrTty | kStrCmdline;
inline constexpr uint64_t kStrCaller =
    kStrProcess | kStrTid | kStrUid | kStrGid;

}  // namespace tracefs
