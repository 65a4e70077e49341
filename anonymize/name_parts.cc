#include "anonymize/name_parts.h"

#include <algorithm>

#include "tracefs/event/event.h"

namespace tracefs::anonymize {
namespace {

constexpr std::string_view kMarks[] = {"~",    ".tmp",  ".lock", ".swp",
                                       ".bak", ".part", ".orig"};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

NameParts SplitName(std::string_view name, const Rule& rule) {
  NameParts parts;
  if (rule.keep_dots) {
    const size_t end = std::min(name.find_first_not_of('.'), name.size());
    parts.dots = name.substr(0, end);
    name.remove_prefix(end);
  }
  if (rule.keep_marks) {
    for (const std::string_view mark : kMarks) {
      if (name.size() <= mark.size() || !name.ends_with(mark)) continue;
      parts.mark = name.substr(name.size() - mark.size());
      name.remove_suffix(mark.size());
      break;
    }
  }
  if (rule.extension != ExtensionRule::kJoin) {
    parts.extension = ExtensionOf(name);
    parts.has_extension = !parts.extension.empty();
    if (parts.has_extension) name.remove_suffix(parts.extension.size() + 1);
  }
  if (rule.keep_digits) {
    size_t start = name.size();
    while (start > 0 && IsDigit(name[start - 1])) --start;
    parts.digits = name.substr(start);
    name.remove_suffix(name.size() - start);
  }
  parts.stem = name;
  return parts;
}

bool IsSpecialName(std::string_view name) {
  return name.empty() || name == "." || name == "..";
}

bool ShowsExtension(const Rule& rule, std::string_view extension) {
  return rule.extension == ExtensionRule::kKeep ||
         (rule.extension == ExtensionRule::kList &&
          std::binary_search(rule.extensions.begin(), rule.extensions.end(),
                             extension));
}

}  // namespace tracefs::anonymize
