// MountNote: the config that a mount was made with, and the traces that it
// writes. tracefs-mount writes it before entering the sandbox, to a place where
// the daemon of root's mount cannot write; so that `tracefs-ctl MNT reload` and
// `undo` need not ask the daemon what to read. An ordinary user's daemon may do
// what its user may: such notes lie beside the sockets.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/control/place.h"

namespace tracefs {

// Paths are absolute.
struct MountNote {
  std::string config = {};  // empty: none, or `config_dir`
  std::string config_dir = {};
  std::vector<std::string> config_keys = {};
  std::string config_state = {};
  // The files that the tracers of the beginning write, and the folder in which
  // one of them keeps what operations destroy (STR_KEEP), if any does.
  std::vector<std::string> traces = {};
  std::string kept = {};

  bool names_config() const { return !config.empty() || !config_dir.empty(); }
};

// For people and tests: the file's bytes. kCorrupt if it is not one.
std::string MountNoteText(const MountNote& note, std::string_view mount_point);
Result<MountNote> ParseMountNote(std::string_view text,
                                 std::string_view mount_point);

// The folder that the note of a mount of ours goes to, opened before the mount
// covers it. `control`: where its socket lies.
Result<UniqueFd> OpenNoteFolder(const ControlFolder& control,
                                const std::string& mount_point);
// Replaces a note that another mount left there under the same device number.
Status WriteMountNote(int folder, const MountIdentity& mount,
                      const std::string& mount_point, const MountNote& note);

// kInvalid if there is none written by its owner, or root, for this mount.
Result<MountNote> ReadMountNote(const MountIdentity& mount);

}  // namespace tracefs
