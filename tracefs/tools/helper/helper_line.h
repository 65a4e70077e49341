// What mount(8) and umount(8) hand to their helpers (mount(8), "EXTERNAL
// HELPERS"): checked, and sorted by who is to act on it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/command/help_page.h"

namespace tracefs {

// mount.fuse.tracefs SRC MNT [-sfnv] [-N NAMESPACE] [-o LIST]... [-t TYPE]
struct MountHelperLine {
  HelpWish help = {};
  bool version = false;
  std::string source;
  std::string mount_point;
  bool fake = false;              // -f: check all, mount nothing
  bool nofail = false;            // a failure is no failure
  bool remount = false;           // change the mount that is there
  std::optional<bool> read_only;  // ro, rw: the last one given
  // The list is that of a mount that is there, completed by mount(8).
  bool complete = false;
  std::string shown;               // one of those that only such a list has
  std::vector<std::string> flags;  // of the mount: nosuid, noexec, …
  std::string config;              // config=; empty: tracefs-mount's own
  std::vector<std::string> own;    // words for tracefs-mount: --visibility, …
  std::string visibility;          // visibility=, for a remount
  std::vector<std::string> for_fuse;  // the rest, for its -o
};

// kInvalid with a sentence where an option cannot be had.
Result<MountHelperLine> ParseMountHelper(int argc, const char* const* argv);

// umount.fuse.tracefs MNT [-nlfvr] [-N NAMESPACE] [-t TYPE]
struct UmountHelperLine {
  HelpWish help = {};
  bool version = false;
  std::string mount_point;
  bool lazy = false;
  bool force = false;
  bool verbose = false;
  bool read_only_if_busy = false;
};
Result<UmountHelperLine> ParseUmountHelper(int argc, const char* const* argv);

// The options of a list: at commas, but for those between quotes, which go.
std::vector<std::string> SplitOptions(const std::string& list);

HelpPage MountHelperHelp();
HelpPage UmountHelperHelp();

}  // namespace tracefs
