#include "filters/input/filter.h"

#include <algorithm>

#include "filters/input/advice.h"
#include "filters/input/check.h"

namespace tracefs {
namespace {

uint64_t NamedOps(const CheckedFilter& filter) {
  uint64_t ops = filter.predicate.named_ops;
  for (const CheckedFilter& child : filter.children) ops |= NamedOps(child);
  return ops;
}

bool KeepsNothing(const CompiledFilter& filter) {
  return std::all_of(filter.programs.begin() + 1, filter.programs.end(),
                     [](const Program& program) {
                       return program.nodes()[0].kind == NodeKind::kDrop;
                     });
}

}  // namespace

Result<Filter> Filter::Compile(std::string_view text,
                               const FilterOrigin& origin,
                               const NameService& users, NameTable& names) {
  const auto ast = ParseFilter(text, origin.file, origin.position);
  if (!ast.ok()) return ast.status();
  const auto checked = CheckFilter(*ast, origin.file, users);
  if (!checked.ok()) return checked.status();
  auto compiled = CompileFilter(*checked, names);
  if (!compiled.ok()) return compiled.status();
  auto source = std::make_shared<Source>();
  source->text = text;
  source->named_ops = NamedOps(*checked);
  source->warnings = AdviseOn(*ast, *checked, origin.file);
  if (source->warnings.empty() && KeepsNothing(*compiled)) {
    source->warnings.push_back(ErrorAt(origin.file, origin.position,
                                       "no operation satisfies this "
                                       "filter")
                                   .message());
  }
  return Filter(std::move(source),
                std::make_shared<const CompiledFilter>(*std::move(compiled)));
}

}  // namespace tracefs
