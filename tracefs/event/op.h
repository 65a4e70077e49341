// The operations a tracer can see: one file-system request at the mount each.
// The table itself, a row each, is op_rows.h; here are the answers a row gives.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tracefs/event/field.h"
#include "tracefs/event/op_rows.h"

namespace tracefs {

// Enumerators are spelled as in configs and traces, with a trailing underscore
// because several of the names are also functions or macros of libc.
enum class Op : uint8_t {
#define TRACEFS_OP_ENUMERATOR(name, number, ...) name##_ = number,
  TRACEFS_OPS(TRACEFS_OP_ENUMERATOR)
#undef TRACEFS_OP_ENUMERATOR
};

#define TRACEFS_OP_PLUS_ONE(...) +1
inline constexpr size_t kOpCount = 0 TRACEFS_OPS(TRACEFS_OP_PLUS_ONE);
#undef TRACEFS_OP_PLUS_ONE

inline constexpr size_t Index(Op op) { return static_cast<size_t>(op); }

// What a request is about, and so what it carries.
enum class OpFamily : uint8_t {
  kName,       // a name in a directory
  kUnnamed,    // a directory, for a file without a name
  kFile,       // a file, open or not
  kOpenFile,   // a file, as a rule through a handle
  kDirectory,  // an open directory
  kData,       // bytes that go into a file or come out of it
  kLock,
};

// What ARG_FLAGS means (export/flag_names.cc); kNone: it is not there.
enum class OpFlags : uint8_t {
  kNone,
  kOpen,    // O_…
  kOpened,  // the same, those of the open
  kRename,
  kXattr,
  kFallocate,
  kWhence,
  kSync,
  kWait,
  kAt,
  kPoll,
  kBits,  // without names
};

// What a feed of file events calls it.
enum class FileActivity : uint8_t {
  kCreate,
  kRead,
  kUpdate,
  kDelete,
  kRename,
  kSetAttributes,
  kSetSecurity,
  kGetAttributes,
  kGetSecurity,
  kOpen,
  kOther,
};

// Bits.
enum OpTrait : uint8_t {
  kNoTraits = 0,
  // A task in the middle of execve(2) may send it: closing sends FLUSH, and
  // might write back and unlock.
  kMayBeExec = 1,
};

struct OpInfo {
  std::string_view name;  // "lookup"
  OpFamily family;
  // Numeric fields (bits) that a request of this kind carries in itself, before
  // callers, attributes and results. A predicate on any other request field is
  // false for the operation.
  uint64_t request_fields;
  OpFlags flags;
  FileActivity activity;  // as far as the arguments don't say more
  uint8_t traits;
};

namespace op_table {

using enum Field;

template <typename... Fields>
constexpr uint64_t Bits(Fields... fields) {
  return (uint64_t{0} | ... | Bit(fields));
}

constexpr uint64_t FieldsOf(OpFamily family, OpFlags flags) {
  const uint64_t every =
      Bits(kTime, kTid, kUid, kGid, kInferred, kInode, kType) |
      (flags == OpFlags::kNone ? 0 : Bit(kFlags));
  switch (family) {
    case OpFamily::kName:
    case OpFamily::kUnnamed:
      return every | Bit(kParentInode);
    case OpFamily::kFile:
      return every;
    case OpFamily::kOpenFile:
    case OpFamily::kDirectory:
      return every | Bit(kFh);
    case OpFamily::kData:
      return every | Bits(kFh, kOffset, kLength);
    case OpFamily::kLock:
      return every |
             Bits(kFh, kOffset, kLength, kLockType, kLockOwner, kLockPid);
  }
  return every;
}

inline constexpr std::array<OpInfo, kOpCount> kRows = {{
#define TRACEFS_OP_ROW(name, number, family, arguments, flags, activity, \
                       traits)                                           \
  {#name,                                                                \
   OpFamily::family,                                                     \
   FieldsOf(OpFamily::family, OpFlags::flags) | Bits arguments,          \
   OpFlags::flags,                                                       \
   FileActivity::activity,                                               \
   traits},
    TRACEFS_OPS(TRACEFS_OP_ROW)
#undef TRACEFS_OP_ROW
}};

}  // namespace op_table

// Whether it may destroy what a file holds (STR_KEEP).
inline constexpr bool DestroysContents(Op op) {
  return op == Op::write_ || op == Op::setattr_ || op == Op::open_ ||
         op == Op::unlink_ || op == Op::rename_ || op == Op::fallocate_ ||
         op == Op::copy_file_range_;
}

// Whether it may give a file blocks of its device, or other ones.
inline constexpr bool WritesContents(Op op) {
  return op == Op::write_ || op == Op::fallocate_ || op == Op::copy_file_range_;
}
// Whether it can be told of it where on the device that lies (STR_EXTENTS).
inline constexpr bool TellsExtents(Op op) {
  return op == Op::read_ || op == Op::fsync_ || op == Op::release_;
}

inline constexpr const OpInfo& Info(Op op) {
  return op_table::kRows[Index(op)];
}

// "lookup", …; the text is static.
inline constexpr std::string_view OpName(Op op) { return Info(op).name; }

// True for operations on a (parent, name) pair: lookup, create, unlink, …
inline constexpr bool HasName(Op op) {
  return Info(op).family == OpFamily::kName;
}
// Whether the operation finds or makes the file it is about, so that a file not
// known before may be known after.
inline constexpr bool FindsFile(Op op) {
  return HasName(op) || Info(op).family == OpFamily::kUnnamed;
}
// Whether the operation is an open(2) of a file that is no directory: with
// O_CREAT and no such file it is a create, with O_TMPFILE a tmpfile.
inline constexpr bool OpensFile(Op op) {
  return op == Op::open_ || op == Op::create_ || op == Op::tmpfile_;
}
// Whether the operation is about two open files, a source and a destination.
inline constexpr bool HasTwoFiles(Op op) { return op == Op::copy_file_range_; }
// Whether it has a second path (NewPathOf).
inline constexpr bool HasSecondPath(Op op) {
  return op == Op::rename_ || op == Op::link_ || HasTwoFiles(op);
}
// In the order of their numbers.
std::vector<Op> OpsOf(OpFamily family);

// The operation of that name, in upper or lower case; `close` is an alias of
// `release`.
std::optional<Op> OpFromName(std::string_view name);

// The operation of that number in a trace, if this version knows it.
std::optional<Op> OpFromNumber(uint64_t number);

}  // namespace tracefs
