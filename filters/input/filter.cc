#include "filters/input/filter.h"

#include "filters/input/check.h"

namespace tracefs {

Result<Filter> Filter::Compile(std::string_view text,
                               const FilterOrigin& origin,
                               const NameService& users, NameTable& names) {
  const auto ast = ParseFilter(text, origin.file, origin.position);
  if (!ast.ok()) return ast.status();
  const auto checked = CheckFilter(*ast, origin.file, users);
  if (!checked.ok()) return checked.status();
  auto compiled = CompileFilter(*checked, names);
  if (!compiled.ok()) return compiled.status();
  return Filter(std::make_shared<const std::string>(text),
                std::make_shared<const CompiledFilter>(*std::move(compiled)));
}

}  // namespace tracefs
