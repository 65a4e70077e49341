#include "tracefs/command/help_page.h"

#include <algorithm>

#include "tracefs/base/text.h"

namespace tracefs {
namespace {

constexpr size_t kFewExamples = 3;

bool Names(std::string_view names, std::string_view name) {
  while (!names.empty()) {
    if (TakeUpTo(names, ' ') == name) return true;
  }
  return false;
}

CommandOptions CommonRows(const HelpPage& page) {
  CommandOptions rows;
  for (const CommandOption& row : page.rows) {
    if (page.common.empty() || Names(page.common, row.long_name())) {
      rows.push_back(row);
    }
  }
  return rows;
}

std::string Examples(const HelpPage& page, size_t most) {
  if (page.examples.empty()) return {};
  std::string text = "\nExamples:\n";
  for (size_t i = 0; i < std::min(most, page.examples.size()); ++i) {
    ((text += "  ") += page.examples[i]) += '\n';
  }
  return text;
}

}  // namespace

std::string HelpText(const HelpPage& page, HelpWish wish) {
  size_t left_out = page.rows.size();
  for (const OptionGroup& group : page.groups) left_out += group.rows.size();
  const CommandOptions common = CommonRows(page);
  left_out -= common.size();
  const bool whole = wish.all || (left_out == 0 && page.details.empty());
  std::string text = page.begin;
  if (!page.rows.empty()) text += '\n';
  if (whole) {
    if (!page.rows.empty()) text += OptionsText(page.rows, page.groups);
    text += page.list + page.details + Examples(page, SIZE_MAX);
    return page.end.empty() ? text : text + '\n' + page.end;
  }
  text += OptionsText(common);
  text += page.list + Examples(page, kFewExamples);
  text += '\n';
  (text += page.command) += " --help=all ";
  if (left_out != 0) {
    text += "has " + std::to_string(left_out) +
            (left_out == 1 ? " more option" : " more options");
  }
  if (!page.details_of.empty()) {
    (text += left_out != 0 ? " and " : "says ") += page.details_of;
  }
  return text + ".\n";
}

}  // namespace tracefs
