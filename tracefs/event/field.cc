#include "tracefs/event/field.h"

#include <array>

#include "tracefs/base/spelling.h"

namespace tracefs {
namespace {

constexpr std::array<FieldInfo, kFieldCount> kFields = {{
#define TRACEFS_FIELD_ROW(id, predicate, trace, arg, width, type, source, \
                          json)                                           \
  {Field::id,       predicate,           trace, arg, width,               \
   FieldType::type, FieldSource::source, json},
    TRACEFS_NUMERIC_FIELDS(TRACEFS_FIELD_ROW)
        TRACEFS_TEXT_FIELDS(TRACEFS_FIELD_ROW)
#undef TRACEFS_FIELD_ROW
            {Field::kOp, "op", "ARG_OP", 0, 1, FieldType::kOp,
             FieldSource::kRequest, "op"},
}};

constexpr uint64_t Bits() { return 0; }
template <typename... Rest>
constexpr uint64_t Bits(Field first, Rest... rest) {
  return Bit(first) | Bits(rest...);
}

// In every request.
constexpr uint64_t kCommon =
    Bits(Field::kTime, Field::kTid, Field::kUid, Field::kGid, Field::kInferred);
constexpr uint64_t kOnInode = kCommon | Bits(Field::kInode, Field::kType);
constexpr uint64_t kOnName =
    kCommon | Bits(Field::kParentInode, Field::kInode, Field::kType);
constexpr uint64_t kOnHandle = kOnInode | Bits(Field::kFh);
constexpr uint64_t kRange = Bits(Field::kOffset, Field::kLength);
constexpr uint64_t kLock =
    kOnHandle | kRange |
    Bits(Field::kLockType, Field::kLockOwner, Field::kLockPid, Field::kFlags);

}  // namespace

std::span<const FieldInfo, kFieldCount> Fields() { return kFields; }

const FieldInfo* FieldByPredicate(std::string_view name) {
  if (name.empty()) return nullptr;
  for (const FieldInfo& f : kFields) {
    if (SameButForCase(f.predicate, name)) return &f;
    if (f.predicate.starts_with('c') && SameButForCase(f.json_key, name)) {
      return &f;
    }
  }
  return nullptr;
}

bool SameField(std::string_view a, std::string_view b) {
  if (SameButForCase(a, b)) return true;
  const FieldInfo* const field = FieldByPredicate(a);
  return field != nullptr && field == FieldByPredicate(b);
}

const FieldInfo* FieldByArgId(uint16_t arg_id) {
  static const auto kByArgId = [] {
    std::array<const FieldInfo*, 128> table{};
    for (const FieldInfo& f : kFields) {
      if (f.arg_id != 0) table[f.arg_id] = &f;
    }
    return table;
  }();
  return arg_id < kByArgId.size() ? kByArgId[arg_id] : nullptr;
}

uint64_t RequestFields(Op op) {
  switch (op) {
    case Op::lookup_:
    case Op::unlink_:
    case Op::rmdir_:
      return kOnName;
    case Op::getattr_:
    case Op::statx_:
      return kOnHandle | Bits(Field::kFlags, Field::kValid);
    case Op::setattr_:
      return kOnHandle | Bits(Field::kValid, Field::kArgMode, Field::kNewUid,
                              Field::kNewGid, Field::kNewSize, Field::kNewAtime,
                              Field::kNewMtime);
    case Op::readlink_:
    case Op::statfs_:
      return kOnInode;
    case Op::symlink_:
      return kOnName;
    case Op::mknod_:
      return kOnName | Bits(Field::kArgMode, Field::kRdev, Field::kUmask);
    case Op::mkdir_:
      return kOnName | Bits(Field::kArgMode, Field::kUmask);
    case Op::rename_:
      return kOnName | Bits(Field::kNewParentInode, Field::kFlags);
    case Op::link_:
      return kOnInode | Bits(Field::kNewParentInode);
    case Op::open_:
    case Op::opendir_:
      return kOnHandle | Bits(Field::kFlags);
    case Op::create_:
      return kOnName |
             Bits(Field::kFh, Field::kFlags, Field::kArgMode, Field::kUmask);
    case Op::tmpfile_:
      return kCommon | Bits(Field::kParentInode, Field::kInode, Field::kType,
                            Field::kFh, Field::kFlags, Field::kArgMode,
                            Field::kUmask);
    case Op::read_:
    case Op::write_:
      return kOnHandle | kRange | Bits(Field::kFlags, Field::kMapped);
    case Op::readdir_:
      return kOnHandle | kRange;
    case Op::flush_:
      return kOnHandle | Bits(Field::kLockOwner);
    case Op::release_:
    case Op::releasedir_:
      return kOnHandle | Bits(Field::kFlags);
    case Op::fsync_:
    case Op::fsyncdir_:
      return kOnHandle | Bits(Field::kFlags);  // 1 = data only
    case Op::setxattr_:
      return kOnInode | Bits(Field::kLength, Field::kFlags);
    case Op::getxattr_:
    case Op::listxattr_:
      return kOnInode | Bits(Field::kLength);
    case Op::removexattr_:
      return kOnInode;
    case Op::access_:
      return kOnInode | Bits(Field::kArgMode);
    case Op::getlk_:
    case Op::setlk_:
    case Op::flock_:
      return kLock;
    case Op::fallocate_:
      return kOnHandle | kRange | Bits(Field::kFlags);
    case Op::lseek_:
      return kOnHandle | Bits(Field::kOffset, Field::kFlags);  // whence
    case Op::copy_file_range_:
      return kOnHandle | kRange |
             Bits(Field::kFhOut, Field::kInodeOut, Field::kOffsetOut,
                  Field::kFlags);
    case Op::ioctl_:
      return kOnHandle | Bits(Field::kCommand, Field::kLength, Field::kFlags);
    case Op::poll_:
      return kOnHandle | Bits(Field::kFlags);  // requested events
  }
  return kCommon;
}

bool HasName(Op op) {
  switch (op) {
    case Op::lookup_:
    case Op::symlink_:
    case Op::mknod_:
    case Op::mkdir_:
    case Op::unlink_:
    case Op::rmdir_:
    case Op::rename_:
    case Op::create_:
      return true;
    default:
      return false;
  }
}

}  // namespace tracefs
