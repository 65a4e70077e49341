// The views that there are: a row each, data rather than code.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "tracefs/screen/drill.h"

namespace tracefs::screen {

struct View {
  char key;  // its digit
  std::string_view name;
  std::string_view title;  // of the column of names
  Group group;
  std::string_view into;  // the view that a row opens into; "": its operations
  std::string_view help;
};

// Those for so many mounts, or traces. At least one.
std::span<const View> Views(size_t sources);
// Null if there is none of that name.
const View* FindView(std::string_view name);
std::vector<std::string_view> ViewNames();

}  // namespace tracefs::screen
