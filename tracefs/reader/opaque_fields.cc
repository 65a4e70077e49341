#include "tracefs/reader/opaque_fields.h"

#include "filters/input/parse.h"

namespace tracefs::reader {
namespace {

uint64_t FieldsIn(const Ast& ast) {
  uint64_t fields = 0;
  for (const Ast& child : ast.children) fields |= FieldsIn(child);
  if (ast.kind != Ast::Kind::kPredicate) return fields;
  const FieldInfo* const field = FieldByPredicate(ast.predicate.field.text);
  if (field != nullptr && IsNumeric(field->field)) fields |= Bit(field->field);
  return fields;
}

}  // namespace

uint64_t FieldsInFilter(std::string_view filter) {
  if (filter.empty()) return 0;
  const Result<Ast> ast = ParseFilter(filter);
  return ast.ok() ? FieldsIn(*ast) : 0;
}

std::string OpaqueAmong(uint64_t fields, const format::TraceContext& trace) {
  std::string text;
  for (const FieldInfo& field : Fields()) {
    if (!IsNumeric(field.field) ||
        (fields & trace.stats.opaque & Bit(field.field)) == 0) {
      continue;
    }
    text += text.empty() ? "" : ", ";
    text += field.predicate.empty() ? field.json_key : field.predicate;
  }
  if (text.empty()) return text;
  return text +
         ": opaque bytes, with which nothing can be compared or counted "
         "(tracefs-anon --reveal makes numbers of them)";
}

}  // namespace tracefs::reader
