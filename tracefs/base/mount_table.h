// The kernel's table of mounts: proc_pid_mountinfo(5).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tracefs {

// A line of it. Users choose the names in it, and those who mount a FUSE file
// system also the source: any byte but zero may be in them.
struct MountLine {
  uint64_t id = 0;
  std::string device;  // "0:53"
  std::string root;    // what of the file system is there: "/" is all of it
  std::string point;
  std::string flags;  // of the mount: "rw,nosuid,relatime"
  std::string type;   // "fuse.tracefs"
  std::string source;
  std::string options;  // of the file system: "ro,user_id=0,…"
};

// Nothing if it is no such line.
std::optional<MountLine> ParseMountLine(std::string_view line);

// Those of this mount namespace, or of the process whose table `path` names,
// without a request to a file system that might not answer. A later one lies
// upon those before it. Empty if it cannot be read.
std::vector<MountLine> MountTable(
    const std::string& path = "/proc/self/mountinfo");

}  // namespace tracefs
