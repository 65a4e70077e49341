// Checked filters as texts that tests can compare.
#pragma once

#include <string>

#include "filters/input/check.h"

namespace tracefs::testing {

// The checked tree, one line a node, indented.
inline std::string Dump(const CheckedFilter& filter, size_t indent = 0) {
  std::string text(indent, ' ');
  switch (filter.kind) {
    case Ast::Kind::kAll:
      return text + "all\n";
    case Ast::Kind::kPredicate:
      return text + Dump(filter.predicate) + '\n';
    case Ast::Kind::kNot:
      text += "not\n";
      break;
    case Ast::Kind::kAnd:
      text += "and\n";
      break;
    case Ast::Kind::kOr:
      text += "or\n";
      break;
  }
  for (const CheckedFilter& child : filter.children) {
    text += Dump(child, indent + 2);
  }
  return text;
}

}  // namespace tracefs::testing
