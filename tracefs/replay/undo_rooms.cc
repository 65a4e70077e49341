#include "tracefs/replay/undo_rooms.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tracefs/base/folder.h"
#include "tracefs/replay/open_beneath.h"

namespace tracefs::replay {

UniqueFd OccupyUndoRoom(int room) {
  UniqueFd fd(OpenBeneath(room, ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
  if (fd && ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) fd.Reset();
  return fd;
}

Result<std::vector<std::string>> LeftUndoRooms(int root) {
  const Result<std::vector<std::string>> names = NamesInFolder(root);
  if (!names.ok()) return names.status();
  std::vector<std::string> left;
  for (const std::string& name : *names) {
    if (!name.starts_with(kUndoRoom)) continue;
    const UniqueFd room(
        OpenBeneath(root, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    struct stat st;
    // Another user's is none of ours, whatever he called it.
    if (!room || ::fstat(room.get(), &st) != 0 || st.st_uid != ::geteuid()) {
      continue;
    }
    if (::flock(room.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      return Status::SystemSaid(EBUSY, "another undo is at work there, in " +
                                           name + ": wait for its end");
    }
    left.push_back(name);
  }
  return left;
}

}  // namespace tracefs::replay
