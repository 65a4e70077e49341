#include "anonymize/fields.h"

#include <array>

#include "tracefs/event/field.h"
#include "tracefs/format/constants.h"

namespace tracefs::anonymize {
namespace {

using format::ArgId;

constexpr uint64_t kNs = 1'000'000'000;
// Of CLK_TCK, in which the kernel tells start times.
constexpr uint64_t kTicks = 100;

constexpr ClassInfo kClasses[] = {
    {kStructureClass, "", "ids, counts and names that hold the trace together"},
    {"uid", "uid", "users: of callers, owners and chown targets"},
    {"gid", "gid", "groups: of callers, owners and chown targets"},
    {"pid", "pid", "processes, threads, sessions, process groups"},
    {"inode", "inode", "inode numbers"},
    {"handle", "handle", "file handles"},
    {"lock-owner", "lock-owner", "owners of locks"},
    {"name", "name", "file names, paths, extensions, symlink targets"},
    {"comm", "process", "names of processes"},
    {"exe", "process", "executables of processes"},
    {"cgroup", "cgroup", "control groups"},
    {"xattr", "xattr", "names of extended attributes"},
    {"data", "data", "bytes read and written"},
    {"checksum", "checksum", "checksums of bytes read and written"},
    {"time", "time", "begin times, on the monotonic clock"},
    {"duration", "duration", "how long operations took"},
    {"clock", "clock", "times of day: of the trace, of files"},
    {"size", "size", "sizes of files"},
    {"io", "io", "offsets and lengths of transfers and locks"},
    {"result", "result", "results"},
    {"mode", "mode", "types, permissions and link counts of files"},
    {"device", "device", "device numbers"},
    {"request", "request", "flags, commands, error numbers"},
    {"totals", "totals",
     "what was counted: losses, totals, aggregates; end reason"},
};

constexpr FieldClass Of(Field field, std::string_view class_name,
                        Shape shape = Shape::kNumber, uint64_t per_second = 0) {
  // Argument ids by field: Info() is not constexpr.
  constexpr uint16_t kIds[] = {
#define TRACEFS_ARG_ID(id, predicate, trace, arg, ...) arg,
      TRACEFS_NUMERIC_FIELDS(TRACEFS_ARG_ID) TRACEFS_TEXT_FIELDS(TRACEFS_ARG_ID)
#undef TRACEFS_ARG_ID
  };
  return {kIds[Index(field)], class_name, shape, per_second};
}
constexpr FieldClass Of(ArgId id, std::string_view class_name,
                        Shape shape = Shape::kNumber, uint64_t per_second = 0) {
  return {static_cast<uint16_t>(id), class_name, shape, per_second};
}

constexpr FieldClass kFields[] = {
    Of(Field::kTime, "time", Shape::kNumber, kNs),
    Of(Field::kLatency, "duration", Shape::kNumber, kNs),
    Of(Field::kTid, "pid"),
    Of(Field::kPid, "pid"),
    Of(Field::kPpid, "pid"),
    Of(Field::kSid, "pid"),
    Of(Field::kPgid, "pid"),
    Of(Field::kInferred, "request"),
    Of(Field::kMapped, "request"),
    Of(Field::kSyscall, "request"),
    Of(Field::kInode, "inode"),
    Of(Field::kParentInode, "inode"),
    Of(Field::kNewParentInode, "inode"),
    Of(Field::kInodeOut, "inode"),
    Of(Field::kFh, "handle"),
    Of(Field::kFhOut, "handle"),
    Of(Field::kOffset, "io"),
    Of(Field::kOffsetOut, "io"),
    Of(Field::kLength, "io"),
    Of(Field::kFlags, "request"),
    Of(Field::kArgMode, "mode"),
    Of(Field::kUmask, "mode"),
    Of(Field::kRdev, "device"),
    Of(Field::kValid, "request"),
    Of(Field::kUid, "uid"),
    Of(Field::kGid, "gid"),
    Of(Field::kNewUid, "uid"),
    Of(Field::kNewGid, "gid"),
    Of(Field::kNewSize, "size"),
    Of(Field::kNewAtime, "clock", Shape::kNumber, kNs),
    Of(Field::kNewMtime, "clock", Shape::kNumber, kNs),
    Of(Field::kCommand, "request"),
    Of(Field::kLockType, "request"),
    Of(Field::kLockOwner, "lock-owner"),
    Of(Field::kLockPid, "pid"),
    Of(Field::kResult, "result"),
    Of(Field::kErrno, "request"),
    Of(Field::kMode, "mode"),
    Of(Field::kNlink, "mode"),
    Of(Field::kSize, "size"),
    Of(Field::kFuid, "uid"),
    Of(Field::kFgid, "gid"),
    Of(Field::kMtime, "clock", Shape::kNumber, kNs),
    Of(Field::kType, "mode"),
    Of(Field::kDataChecksum, "checksum"),
    Of(Field::kName, "name", Shape::kComponent),
    Of(Field::kNewName, "name", Shape::kComponent),
    Of(Field::kExt, "name", Shape::kExtension),
    Of(Field::kPath, "name", Shape::kPath),
    Of(Field::kNewPath, "name", Shape::kPath),
    Of(Field::kTarget, "name", Shape::kPath),
    Of(Field::kXattrName, "xattr", Shape::kXattr),
    Of(Field::kComm, "comm", Shape::kWord),
    Of(Field::kExe, "exe", Shape::kPath),
    Of(Field::kCgroup, "cgroup", Shape::kPath),
    Of(Field::kData, "data", Shape::kBytes),
    Of(ArgId::kTimeSec, "time", Shape::kNumber, 1),
    Of(ArgId::kTimeUsec, "time", Shape::kNumber, 1'000'000),
    Of(ArgId::kPathId, kStructureClass, Shape::kStructure),
    Of(ArgId::kParentPathId, kStructureClass, Shape::kStructure),
    Of(ArgId::kNewParentPathId, kStructureClass, Shape::kStructure),
    Of(ArgId::kProcessId, kStructureClass, Shape::kStructure),
    Of(ArgId::kStartTime, "time", Shape::kNumber, kTicks),
    Of(ArgId::kClockMonotonic, "time", Shape::kNumber, kNs),
    Of(ArgId::kClockReal, "clock", Shape::kNumber, kNs),
    Of(ArgId::kFirstTime, "time", Shape::kNumber, kNs),
    Of(ArgId::kLastTime, "time", Shape::kNumber, kNs),
    Of(ArgId::kWatermark, "time", Shape::kNumber, kNs),
    Of(ArgId::kEventCount, kStructureClass, Shape::kStructure),
    Of(ArgId::kLossCount, "totals", Shape::kStructure),
    Of(ArgId::kLossReason, "totals", Shape::kStructure),
    Of(ArgId::kOpTotal, "totals", Shape::kStructure),
    Of(ArgId::kLossTotal, "totals", Shape::kStructure),
    Of(ArgId::kEndReason, "totals", Shape::kStructure),
    Of(ArgId::kAggregate, "totals", Shape::kStructure),
    Of(ArgId::kAggregateTotal, "totals", Shape::kStructure),
    Of(ArgId::kKeyOp, "request"),
    Of(ArgId::kDirectory, "name", Shape::kPath),
    Of(ArgId::kOther, "totals", Shape::kStructure),
    Of(ArgId::kCount, "totals", Shape::kStructure),
    Of(ArgId::kCountMissed, "totals", Shape::kStructure),
    Of(ArgId::kErrorCount, "totals", Shape::kStructure),
    Of(ArgId::kByteCount, "totals", Shape::kStructure),
    Of(ArgId::kLatencySum, "totals", Shape::kStructure),
    Of(ArgId::kLatencyMax, "totals", Shape::kStructure),
    Of(ArgId::kLatencyHistogram, "totals", Shape::kStructure),
    Of(ArgId::kSizeMax, "totals", Shape::kStructure),
    Of(ArgId::kSizeHistogram, "totals", Shape::kStructure),
    Of(ArgId::kRule, "totals", Shape::kStructure),
    // Who wrote the config may have put names into these.
    Of(ArgId::kRuleTitle, "name", Shape::kPath),
    Of(ArgId::kRuleAction, "name", Shape::kPath),
    Of(ArgId::kRuleKey, "totals", Shape::kStructure),
    Of(ArgId::kRuleLimit, "totals", Shape::kStructure),
    Of(ArgId::kRuleWindow, "totals", Shape::kStructure),
    Of(ArgId::kRuleWindows, "totals", Shape::kStructure),
    Of(ArgId::kKeyPid, "pid"),
    Of(ArgId::kTracerId, kStructureClass, Shape::kStructure),
    Of(ArgId::kBlockCount, kStructureClass, Shape::kStructure),
    Of(ArgId::kMessageName, kStructureClass, Shape::kStructure),
    Of(ArgId::kArgumentName, kStructureClass, Shape::kStructure),
    Of(ArgId::kProperty, kStructureClass, Shape::kProperty),
};

}  // namespace

std::span<const ClassInfo> Classes() { return kClasses; }

const ClassInfo* FindClass(std::string_view name) {
  for (const ClassInfo& c : kClasses) {
    if (c.name == name) return &c;
  }
  return nullptr;
}

const FieldClass* FindField(uint16_t arg_id) {
  for (const FieldClass& f : kFields) {
    if (f.arg_id == arg_id) return &f;
  }
  return nullptr;
}

}  // namespace tracefs::anonymize
