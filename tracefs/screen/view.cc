#include "tracefs/screen/view.h"

#include <algorithm>
#include <array>

namespace tracefs::screen {
namespace {

constexpr std::array kViews = {
    View{'1', "operations", "OPERATION", Group::kOp, "processes",
         "which kinds of operations"},
    View{'2', "processes", "PROCESS", Group::kProcess, "files",
         "who asks for them; as a tree: below who began them"},
    View{'3', "files", "FILE", Group::kFile, "", "what they are about"},
    View{'4', "directories", "DIRECTORY", Group::kDirectory, "files",
         "where that is; as a tree: with all that is below"},
    View{'5', "errors", "ERROR", Group::kError, "operations",
         "what fails, and how"},
    View{'6', "users", "USER", Group::kUser, "processes", "for whom"},
    View{'7', "commands", "COMMAND", Group::kCommand, "processes",
         "processes of one name together"},
    View{'8', "mounts", "MOUNT", Group::kSource, "processes",
         "where several mounts are looked at"},
};

}  // namespace

std::span<const View> Views(size_t sources) {
  static_assert(kViews.back().group == Group::kSource);
  return std::span(kViews).first(kViews.size() - (sources < 2 ? 1 : 0));
}

const View* FindView(std::string_view name) {
  const auto at =
      std::find_if(kViews.begin(), kViews.end(),
                   [name](const View& view) { return view.name == name; });
  return at == kViews.end() ? nullptr : at;
}

std::vector<std::string_view> ViewNames() {
  std::vector<std::string_view> names;
  for (const View& view : kViews) names.push_back(view.name);
  return names;
}

}  // namespace tracefs::screen
