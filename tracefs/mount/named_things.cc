#include "tracefs/mount/named_things.h"

#include <fcntl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <utility>

#include "tracefs/base/mount_path.h"
#include "tracefs/control/mount_note.h"
#include "tracefs/crypto/cipher.h"
#include "tracefs/daemon/capabilities.h"
#include "tracefs/daemon/sandbox.h"

namespace tracefs {
namespace {

// Files that mounting itself examines once the mount exists: libfuse checks
// whether /run/mount/utab is to be written (its mount_util.c).
Status CheckMayBeCovered(const std::string& mount_point) {
  if (mount_point == "/") return Status::Ok();
  for (const char* needed : {"/proc", "/run/mount"}) {
    if (!IsAtOrBelow(needed, mount_point)) continue;
    return Status::Invalid(
        "'" + mount_point + "' cannot be covered: mounting takes what is in " +
        needed + "; mount at another place, or use tracefs-run --root");
  }
  return Status::Ok();
}

// Which config `tracefs-ctl MNT reload` is to read, and which traces `undo`.
// The folder is closed then: the sandbox has no way to it.
void NoteFiles(const MountOptions& options, const MountIdentity& mount,
               NamedThings& named) {
  MountNote note{.config = named.config,
                 .traces = std::move(named.traces),
                 .kept = std::move(named.kept)};
  if (!options.config_dir.empty()) {
    note.config.clear();
    note.config_dir = options.config_dir;
    note.config_keys = options.config_keys;
    note.config_state = options.config_state;
  }
  const Status written =
      named.notes.ok()
          ? WriteMountNote(named.notes->get(), mount, named.mount_point, note)
          : named.notes.status();
  named.notes = Status();
  const bool nothing = !note.names_config() && note.traces.empty();
  if (written.ok() || nothing) return;
  std::cerr << "tracefs-mount: tracefs-ctl MNT reload will have to be told the "
               "config, and undo the trace: "
            << written.message() << '\n';
}

}  // namespace

std::string Resolved(const std::string& path) {
  char resolved[PATH_MAX];
  return ::realpath(path.c_str(), resolved) != nullptr ? resolved : path;
}

Result<NamedThings> FindNamedThings(const MountOptions& options, bool uring,
                                    bool is_private) {
  NamedThings found;
  found.mount_point = Resolved(options.mount_point);
  if (Status s = CheckMayBeCovered(found.mount_point); !s.ok()) return s;
  char here[PATH_MAX];
  if (::getcwd(here, sizeof here) != nullptr) found.here = here;
  if (!options.config.empty()) found.config = Resolved(options.config);
  found.folder = OpenOwnControlFolder(found.mount_point);
  if (found.folder.ok()) {
    found.notes = OpenNoteFolder(*found.folder, found.mount_point);
  }
  if (found.folder.ok() && !is_private) {
    found.last_word = LastWord::Open(*found.folder, found.mount_point);
  }
  if (options.sandbox && uring && HasCapability(CAP_SYS_ADMIN)) {
    Result<UniqueFd> sys = OpenSys();
    if (!sys.ok()) return sys.status();
    found.sys = *std::move(sys);
  }
  LoadCiphers();  // a tracer that comes later may want any
  ::tzset();      // formatting a time reads the time-zone file
  // Nobody's directory is kept busy by us.
  if (::chdir("/") != 0) return Status::System(errno, "/");
  return found;
}

Result<ControlSocket> OpenControlSocket(const Session& session,
                                        const MountOptions& given,
                                        NamedThings& named) {
  if (!named.folder.ok()) return named.folder.status();
  const Result<MountIdentity> mount = IdentifyMount(session.mount_point());
  if (!mount.ok()) return mount.status();
  NoteFiles(given, *mount, named);
  ControlServerOptions options;
  options.owner = ::geteuid();
  options.name = mount->SocketName();
  Result<std::unique_ptr<ControlServer>> server =
      ControlServer::Create(std::move(options), *std::move(named.folder));
  if (!server.ok()) return server.status();
  return ControlSocket{::makedev(mount->major, mount->minor),
                       std::move(*server)};
}

}  // namespace tracefs
