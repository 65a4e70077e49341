// open_tree(2), mount_setattr(2).
#include "tracefs/base/enclosed_folder.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tracefs {

UniqueFd EncloseFolder(UniqueFd folder) {
  struct stat st;
  if (::fstat(folder.get(), &st) != 0 || !S_ISDIR(st.st_mode)) return folder;
  UniqueFd copy(static_cast<int>(
      ::syscall(SYS_open_tree, folder.get(), "",
                AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC)));
  mount_attr restricted{};
  restricted.attr_set =
      MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
  if (!copy || ::syscall(SYS_mount_setattr, copy.get(), "", AT_EMPTY_PATH,
                         &restricted, sizeof restricted) != 0) {
    return folder;
  }
  return copy;
}

}  // namespace tracefs
