// What is in a folder, as a stranger tells it.
#pragma once

#include <map>
#include <string>

namespace tracefs::replay {

inline constexpr char kRoomOfUndo[] = "room-of-undo";

// What is below `folder`, as find(1) and stat(1) tell it: type, mode, owner,
// names of one file, contents, extended attributes; not times. The room of an
// undo is left out.
std::map<std::string, std::string> Listing(const std::string& folder);

}  // namespace tracefs::replay
