// The folders in which undos work (undo_apply.h): one undo at a time in a
// directory, and what those left that were killed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"

namespace tracefs::replay {

// How their names begin; the rest is random.
inline constexpr std::string_view kUndoRoom = ".tracefs-undo-";

// Says that somebody works in `room` (O_PATH will do) for as long as the
// descriptor is open, even if its process is killed. None where the file system
// has no such locks.
UniqueFd OccupyUndoRoom(int room);

// Those in the directory `root` in which nobody works any more. EBUSY, with its
// name, if somebody works in one.
Result<std::vector<std::string>> LeftUndoRooms(int root);

}  // namespace tracefs::replay
