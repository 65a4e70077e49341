// Small files of tables become larger ones, when the time in which they were
// made is over: DIR/host=H/date=D/SERIAL-1-8 and SERIAL-9-40 become
// SERIAL-1-40.
//
// Nothing is lost and nothing is there twice, at any time, whoever is killed:
// the merged files and links to all others are put together in a folder beside,
// which then changes places with that of the day, at once. The old one stays
// for a minute for those who have just listed it; but a name that they then
// open may be gone.
//
// Where a file system knows neither links nor how to exchange folders (object
// stores), a file first gets a hidden name, then those before it go, then it
// gets its own: rows are missing for that moment. If it is killed meanwhile,
// the next round completes the work.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "tracefs/base/status.h"

namespace tracefs {

struct MergeRules {
  std::string format;      // "parquet" or "jsonl"
  int64_t every_s = 3600;  // files of such a time that is over are merged
  uint64_t most_bytes = uint64_t{256} << 20;  // of what is merged
  bool exchanges = true;  // false: as if the file system could not
};

struct MergeCounts {
  uint64_t merged = 0;  // files that became part of others
  uint64_t made = 0;
};

// Formats whose files can be merged.
bool CanMerge(const std::string& format);

// One thread of one process at a time works on a directory (the keeper's lock).
class Merger {
 public:
  // `root` outlives it.
  Merger(int root, MergeRules rules) : root_(root), rules_(std::move(rules)) {}

  // What is due in the folder of a host. A file that cannot be merged stays as
  // it is, and is told of once.
  Status MergeHost(const std::string& host, int64_t now_s, MergeCounts* counts);

 private:
  const int root_;
  const MergeRules rules_;
  std::set<std::string> hopeless_;  // HOST/NAME
  // HOST/date=D where there is nothing to do, as long as they have not changed:
  // when they did last.
  std::map<std::string, std::pair<int64_t, int64_t>> settled_;
};

}  // namespace tracefs
