// The digest of a tree: a line for each file and directory, in the order of
// their paths, and one hash over all of them. Times and inode numbers are not
// in it, nor are the sizes of directories: they are each file system's own.
//
//   100644 1000:1000 1 5 sha256=5891b5b5…  docs/a.txt
//   mode   owner links size contents      path
//
// Links are those of files; owners are "-" where they do not count, and so are
// contents where holes are too large to be read (hole_budget.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/replay/plan_file.h"

namespace tracefs::replay {

struct DigestOptions {
  bool owners = true;
  bool contents = true;
  // CompareWithPlan: set-id bits are to be as recorded; they were not left out.
  bool set_id = true;
  // CompareWithPlan: recorded bytes were written, so that contents are to be as
  // recorded.
  bool recorded_bytes = true;
  bool prepared = true;  // the replay made what was there before
};

struct DigestLine {
  std::string path;
  uint32_t mode = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint64_t links = 0;
  uint64_t size = 0;
  std::string contents;  // "sha256=…", "target=…", "rdev=…", or "-"
  bool has_owner = true;
  uint32_t checksum = 0;  // CRC-32C of contents; not in the text

  std::string Text() const;  // without a line end
};

struct TreeDigest {
  std::vector<DigestLine> lines;
  std::string hash;  // SHA-256 over all lines with their ends, in hex

  std::string Text() const;  // all lines, and last "tree sha256=…"
};

// Of the tree below the directory open as `root`, on its file system only. No
// link is followed.
Result<TreeDigest> DigestTree(int root, const DigestOptions& options);

// What TreeDigest::Text gave.
Result<TreeDigest> ParseDigest(std::string_view text);

// What differs, path by path, as "path: …". At most `most`, and `*count` is how
// many there are.
std::vector<std::string> CompareDigests(const TreeDigest& expected,
                                        const TreeDigest& found, size_t most,
                                        uint64_t* count);

struct PlanComparison {
  std::vector<std::string> differences;  // the first of them
  uint64_t difference_count = 0;
  // Files whose contents the replay made up, at least in part, and that nothing
  // in the trace says to be right all the same.
  std::vector<std::string> made_up;  // the first of them
  uint64_t made_up_count = 0;
  // Files of a tree that was there, whose contents the trace does not tell.
  uint64_t not_compared = 0;
};

// What a plan expects in the end, by path.
Result<std::map<std::string, TreeEntry>> ExpectedOf(int plan);

// The same against what a plan expects in the end. `others`: the tree may have
// what the plan does not know.
Result<PlanComparison> CompareWithPlan(int plan, const TreeDigest& found,
                                       const DigestOptions& options,
                                       bool others, size_t most);

}  // namespace tracefs::replay
