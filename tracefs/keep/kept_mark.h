// What shows that a folder is one where mounts keep things, and which names in
// it they have made: nothing else in it is theirs to remove.
#pragma once

#include <string>
#include <string_view>

#include "tracefs/base/status.h"

namespace tracefs::keep {

// A file in such a folder, which says for people what the folder is for.
inline constexpr char kKeptMark[] = ".tracefs-kept";

// Whether it can be the folder of a trace (format::SerialText).
bool IsTraceName(std::string_view name);
// Whether it can be an object in one.
bool IsObjectName(std::string_view name);

// Marks the directory open as `folder` if it is empty; kInvalid, and it stays
// as it is, if it has neither a mark nor nothing in it, or has something in it
// that no mount has made. `what` names it in messages.
Status TakeAsKept(int folder, const std::string& what);

}  // namespace tracefs::keep
