// The parts of a file name that a rule treats apart (POLICY.md, "Names").
#pragma once

#include <string_view>

#include "anonymize/policy.h"

namespace tracefs::anonymize {

// dots stem digits '.' extension mark: what a rule does not keep apart is in
// the stem.
struct NameParts {
  std::string_view dots = {};
  std::string_view stem = {};
  std::string_view digits = {};
  std::string_view extension = {};  // without its dot
  bool has_extension = false;
  std::string_view mark = {};
};
NameParts SplitName(std::string_view name, const Rule& rule);

// "", "." and "..": they mean something and hide nothing.
bool IsSpecialName(std::string_view name);

// The rule leaves this extension in clear.
bool ShowsExtension(const Rule& rule, std::string_view extension);

}  // namespace tracefs::anonymize
