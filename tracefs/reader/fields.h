// Fields as the reading library numbers and names them, and their values in a
// record.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "tracefs/event/field.h"
#include "tracefs/format/record.h"

namespace tracefs::reader {

// How a field's value comes and is stored in columns.
enum class Shape : uint8_t {
  kNumber,  // of `width` bytes
  kSigned,
  kFlag,      // 1 or absent
  kTime,      // ns since 1970
  kDuration,  // ns
  kName,      // a number that is shown by a name: op, errno, file type
  kText,      // UTF-8 by intention
  kBytes,     // anything
};

struct FieldRow {
  uint32_t id = 0;
  const char* name = nullptr;                 // its key in JSON Lines
  std::optional<Field> field = std::nullopt;  // none: made by the reader
  Shape shape{};
  uint8_t width = 0;    // bytes of a number
  bool common = false;  // one of those that JSON Lines has in the first place
};

// All of them, in order of ids. Made once; threads: any.
std::span<const FieldRow> FieldRows();
// Null if there is none.
const FieldRow* FindField(uint32_t id);
// By its key in JSON Lines, else by its word in filters. `size` and `mode` are
// those of JSON Lines: of the request, not of the file.
const FieldRow* FindField(std::string_view name);

// For those that are no texts. False where the record does not have it.
bool NumberOf(const FieldRow& row, const format::Record& record, size_t trace,
              uint64_t* value);
// Of texts, and of kName; `buffer` may hold it. False where it is absent.
bool TextOf(const FieldRow& row, const format::Record& record,
            PathBuffer& buffer, std::string_view* text);
// The name of a number of kName; empty where it has none.
std::string_view NameOf(const FieldRow& row, uint64_t number);

}  // namespace tracefs::reader
