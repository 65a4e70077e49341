#include "tracefs/base/state_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "tracefs/base/durable.h"
#include "tracefs/base/ownership.h"
#include "tracefs/base/unique_fd.h"

namespace tracefs {
namespace {

// What the environment says, if it is an absolute path: others are to be
// ignored (XDG Base Directory Specification).
std::string AbsoluteFrom(const char* variable) {
  const char* const value = ::secure_getenv(variable);
  return value != nullptr && value[0] == '/' ? value : std::string();
}

}  // namespace

std::string StateFolder() {
  // Several are separated by colons; the first is the main one.
  const std::string service = AbsoluteFrom("STATE_DIRECTORY");
  if (!service.empty()) return service.substr(0, service.find(':'));
  if (::geteuid() == 0) return "/var/lib/tracefs";
  const std::string state = AbsoluteFrom("XDG_STATE_HOME");
  if (!state.empty()) return state + "/tracefs";
  const std::string home = AbsoluteFrom("HOME");
  return home.empty() ? home : home + "/.local/state/tracefs";
}

Status MakeFolders(const std::string& path, unsigned mode) {
  size_t slash = 0;
  do {
    slash = path.find('/', slash + 1);
    const std::string folder = path.substr(0, slash);
    if (::mkdir(folder.c_str(), mode) == 0) {
      if (Status s = SyncFolderOf(folder); !s.ok()) return s;
    } else if (errno != EEXIST) {
      const int error = errno;
      struct stat there;
      // Read-only, or not ours, but there.
      if (::stat(folder.c_str(), &there) == 0 && S_ISDIR(there.st_mode)) {
        continue;
      }
      return Status::System(error, folder);
    }
  } while (slash != std::string::npos);
  return {};
}

Status MakePrivateFolder(const std::string& path) {
  if (Status s = MakeFolders(path, 0700); !s.ok()) return s;
  const UniqueFd folder(
      ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder) return Status::System(errno, path);
  return CheckOwnership(folder.get(), {.type = S_IFDIR, .forbidden = 077},
                        "folder '" + path + "'");
}

}  // namespace tracefs
