// Fields: what can be known about an operation. The table itself, a row each,
// is field_rows.h; here are the answers a row gives and how to ask for them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "tracefs/event/data_class.h"
#include "tracefs/event/field_rows.h"
#include "tracefs/event/verbosity.h"

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
  kSyscall,     // goes through rings of the kernel (process/system_calls.h)
  kDetails,     // found out aside (process/caller_details.h)
  kAncestors,   // a walk up the table of parents
};

// How the lines of tracefs-dump show a field (export/text.cc).
enum class TextStyle : uint8_t {
  kOwnPlace,  // where its line has a place for it
  kNotShown,
  // Among the arguments, behind its JSON key:
  kDecimal,
  kSigned,
  kHex,
  kOctal,
  kFlag,  // the key alone, where it is 1
  kTimestamp,
  kWord,
  kBytes,  // the first of them
  // In a form of its own:
  kFlags,
  kSetMask,
  kAccessMode,
  kDevice,
  kLockType,
  kLockOwner,
  kSyscall,
};

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
// The bit of a numeric field in Event::present and in field masks.
inline constexpr uint64_t Bit(Field f) { return uint64_t{1} << Index(f); }

struct FieldInfo {
  Field field;
  std::string_view predicate;   // "" where filters cannot name it
  std::string_view trace_name;  // "ARG_UID"
  uint16_t arg_id;              // without the length bit
  uint16_t width;               // bytes of the value; 0 = variable length
  DataShape shape;
  FieldType type;
  FieldSource source;
  uint64_t verbosity;  // the STR_ flags that choose it, any of them
  DataClass data_class;
  TextStyle text;
  std::string_view json_key;
};

// Every row, in Field order.
inline constexpr std::array<FieldInfo, kFieldCount> kFields = {{
// clang-format off
#define TRACEFS_FIELD_ROW(id, predicate, name, arg, width, shape, type,      \
                          source, verbosity, data_class, text, json)         \
  {Field::id, predicate, name, arg, width, DataShape::shape,                 \
   FieldType::type, FieldSource::source, verbosity, DataClass::data_class,   \
   TextStyle::text, json},
// clang-format on
#define TRACEFS_NUMERIC_ROW(id, predicate, name, arg, width, ...) \
  TRACEFS_FIELD_ROW(id, predicate, name, arg, width, kNumber, __VA_ARGS__)
#define TRACEFS_TEXT_ROW(id, predicate, name, arg, shape, ...) \
  TRACEFS_FIELD_ROW(id, predicate, name, arg, 0, shape, __VA_ARGS__)
    TRACEFS_NUMERIC_FIELDS(TRACEFS_NUMERIC_ROW)
        TRACEFS_TEXT_FIELDS(TRACEFS_TEXT_ROW)
#undef TRACEFS_TEXT_ROW
#undef TRACEFS_NUMERIC_ROW
#undef TRACEFS_FIELD_ROW
            {Field::kOp, "op", "ARG_OP", 0, 1, DataShape::kNumber,
             FieldType::kOp, FieldSource::kRequest, kStrNone,
             DataClass::kRequest, TextStyle::kOwnPlace, "op"},
}};
inline constexpr std::span<const FieldInfo, kFieldCount> Fields() {
  return kFields;
}
inline constexpr const FieldInfo& Info(Field f) { return kFields[Index(f)]; }

// Plain numbers of one byte are 1 or 0. A filter may name them without a value,
// and a trace holds them only where they are 1.
inline constexpr bool IsFlag(Field f) {
  return Info(f).type == FieldType::kUnsigned && Info(f).width == 1;
}

// The row of that predicate name, in upper or lower case. What is about the
// caller ("cuid", "cname") is also known by its key in JSON Lines ("uid",
// "comm").
const FieldInfo* FieldByPredicate(std::string_view name);
// Whether two words name the same: a predicate by any of its names, or the
// same word in another case.
bool SameField(std::string_view a, std::string_view b);
// The row of that trace argument id.
const FieldInfo* FieldByArgId(uint16_t arg_id);

}  // namespace tracefs
