// Thrift's compact protocol, read: footers and page headers of Parquet files.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace tracefs {

struct ThriftValue {
  struct Field;

  int64_t number = 0;                 // of integers; 0 or 1 of booleans
  std::string_view text;              // of binaries; points into what was read
  std::vector<ThriftValue> elements;  // of lists
  std::vector<Field> fields;          // of structs

  // May be null.
  const ThriftValue* Find(int id) const;
  int64_t Number(int id, int64_t otherwise) const {
    const ThriftValue* const value = Find(id);
    return value != nullptr ? value->number : otherwise;
  }
};

struct ThriftValue::Field {
  int id = 0;
  ThriftValue value = {};
};

inline const ThriftValue* ThriftValue::Find(int id) const {
  for (const Field& field : fields) {
    if (field.id == id) return &field.value;
  }
  return nullptr;
}

// A struct at the beginning of `bytes`; how long it is. Nothing on what is cut
// off or malformed.
std::optional<size_t> ReadThrift(std::string_view bytes, ThriftValue* out);

}  // namespace tracefs
