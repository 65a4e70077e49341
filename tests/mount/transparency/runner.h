// Runs scenarios on a backing directory and on a mount of it, and compares.
#pragma once

#include <sys/types.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tests/mount/transparency/scenario.h"

namespace tracefs::transparency {

// A documented difference (deviations.cc). Asserted: a scenario that does not
// deviate (any more) is an error too, unless it deviates only sometimes.
struct Deviation {
  const char* scenario;
  const char* reason;
  bool always = true;
};
std::span<const Deviation> Deviations();

struct RunnerOptions {
  std::string backing;            // a directory …
  std::string mount;              // … and where it is seen through the mount
  std::optional<uid_t> user;      // only as this user; default: all four
  std::string filter;             // only scenarios whose name contains this
  bool expect_deviations = true;  // false: a bind mount, which has none
  // False: an overlay below has some deviations itself, so that none is seen.
  bool expect_all_deviations = true;
  bool keep = false;  // leave the directories behind
};

struct Difference {
  std::string scenario;
  std::string user;
  std::string text;  // for a reader: the first lines that differ
};

struct Report {
  int runs = 0;
  int deviations = 0;                   // documented ones, seen
  std::vector<Difference> differences;  // all else
};

// All scenarios of all tables.
std::vector<const Scenario*> AllScenarios();

// Needs root (it becomes other users) and leaves no process behind. Each
// scenario has half a minute; one that hangs is killed and reported.
Report RunTransparency(const RunnerOptions& options);

// One line for each file below `path`: type, mode, owner, group, size, links,
// content, link target, xattrs. With `identity` also what only the same file
// seen twice has in common: inode number, blocks, mtime, ctime, birth time.
std::string DumpTree(const std::string& path, bool identity);

}  // namespace tracefs::transparency
