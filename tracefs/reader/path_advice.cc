#include "tracefs/reader/path_advice.h"

#include <algorithm>

#include "filters/input/parse.h"
#include "tracefs/base/printable.h"
#include "tracefs/reader/trace_place.h"

namespace tracefs::reader {
namespace {

constexpr size_t kMostPaths = 16;

void AddPaths(const Ast& ast, std::vector<std::string>* paths) {
  for (const Ast& child : ast.children) AddPaths(child, paths);
  if (ast.kind != Ast::Kind::kPredicate) return;
  const FieldInfo* const field = FieldByPredicate(ast.predicate.field.text);
  if (field != &Info(Field::kPath) && field != &Info(Field::kNewPath)) return;
  for (const AstValue& value : ast.predicate.values) {
    for (const AstWord& word : value.words) {
      if (word.text.starts_with('/') && paths->size() < kMostPaths) {
        paths->push_back(word.text);
      }
    }
  }
}

}  // namespace

std::vector<std::string> AdviceOnPaths(std::string_view filter,
                                       std::string_view origin,
                                       const TraceSet& traces) {
  std::vector<std::string> advice;
  const Result<Ast> ast = ParseFilter(filter);
  if (filter.empty() || !ast.ok()) return advice;
  std::vector<std::string> paths;
  AddPaths(*ast, &paths);
  for (const std::string& path : paths) {
    for (size_t i = 0; i < traces.size(); ++i) {
      const TracePlace place(traces.trace(i).context().description.header);
      const std::vector<std::string> readings = place.Readings(path, "/");
      if (!place.Holds(path) || readings[0] == path) continue;
      std::string text = std::string(origin) +
                         ": paths of the trace begin at " +
                         Printable(place.Text()) + ": " + Printable(path) +
                         " is " + Printable(readings[0]) + " there";
      if (std::ranges::find(advice, text) == advice.end()) {
        advice.push_back(std::move(text));
      }
    }
  }
  return advice;
}

}  // namespace tracefs::reader
