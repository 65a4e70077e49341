// Everything a mount finds by name, all before it covers anything.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/control/place.h"
#include "tracefs/control/server.h"
#include "tracefs/mount/last_word.h"
#include "tracefs/mount/options.h"
#include "tracefs/mount/session.h"

namespace tracefs {

// As realpath(3) returns it; unchanged if it does not exist.
std::string Resolved(const std::string& path);

// All that is found by its name once the outputs are open. The mount may cover
// any of it, and a look-up there would wait for the first answer: between the
// mount and that, nothing is looked up.
struct NamedThings {
  std::string mount_point;
  std::string here;  // the caller's working directory; empty: it is gone
  std::string config;
  // For the note (mount_note.h): absolute paths.
  std::vector<std::string> traces;
  std::string kept;
  Result<ControlFolder> folder = Status();
  Result<UniqueFd> notes = Status();
  // Null for a private mount, which would otherwise look like one that others
  // can see.
  std::unique_ptr<LastWord> last_word;
  UniqueFd sys;  // for the sandbox
};
Result<NamedThings> FindNamedThings(const MountOptions& options, bool uring,
                                    bool is_private);

struct ControlSocket {
  dev_t device = 0;  // of the mount
  std::unique_ptr<ControlServer> server;
};
// Where the clients of this mount will look for it. Uses up the folders.
Result<ControlSocket> OpenControlSocket(const Session& session,
                                        const MountOptions& given,
                                        NamedThings& named);

}  // namespace tracefs
