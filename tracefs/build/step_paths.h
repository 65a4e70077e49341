// StepPaths: the files of a step as numbers, and StepPathFinder, which knows
// the one that a copy writes where the trace does not name it.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "tracefs/build/file_step.h"
#include "tracefs/build/path_table.h"

namespace tracefs::build {

// kNone where a step has none.
struct StepPaths {
  PathTable::Id path = PathTable::kNone;
  PathTable::Id path2 = PathTable::kNone;
};

// Older traces tell of a copy's destination its handle and inode only: it is
// what was opened as that handle, by the name that it was last seen to have.
//
// Used by one thread. Memory: some bytes for each handle that is open and for
// each inode that was opened.
class StepPathFinder {
 public:
  // `paths` outlives it.
  explicit StepPathFinder(PathTable& paths) : paths_(paths) {}

  // Of every step, in order.
  StepPaths Of(const FileStep& step);
  // Copies whose destination nothing in the trace says.
  uint64_t unknown_destinations() const { return unknown_; }

 private:
  struct Opened {
    PathTable::Id path = PathTable::kNone;
    uint64_t inode = 0;  // 0 = not known
  };

  PathTable::Id Destination(const FileStep& step) const;
  void Note(const FileStep& step, const StepPaths& ids);

  PathTable& paths_;
  std::unordered_map<uint64_t, Opened> handles_;
  std::unordered_map<uint64_t, PathTable::Id> inodes_;
  uint64_t unknown_ = 0;
};

}  // namespace tracefs::build
