#include "tracefs/event/field.h"

#include <array>

#include "tracefs/base/spelling.h"

namespace tracefs {

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

}  // namespace tracefs
