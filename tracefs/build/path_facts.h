// PathFacts: what is known of each path so far, at last at the end of a trace.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tracefs/build/use_collector.h"

namespace tracefs::build {

struct PathFacts {
  uint64_t size = 0;
  uint64_t mtime_ns = 0;  // as it was last seen; 0 = not known
  uint8_t type = 0;       // st_mode >> 12; 0 = not known
  bool gone = false;      // removed, or moved away
};

// Used by one thread.
class FactsTable {
 public:
  // `paths` outlives it.
  explicit FactsTable(PathTable& paths) : paths_(paths) {}

  // `moved` is called with the old and the new path of everything in a
  // directory that this operation moves: paths that the trace itself does not
  // name.
  void Note(const FileStep& step, const StepPaths& ids,
            const std::function<void(PathId from, PathId to)>& moved);
  const PathFacts& Of(PathId path) { return At(path); }
  std::vector<PathFacts> Take();

 private:
  PathFacts& At(PathId path);
  struct Moved {
    PathId from;
    PathId to;
    size_t in;  // which of them it lies in; SIZE_MAX: what is renamed itself
    PathFacts facts;
  };
  void AddFolder(PathId from, PathId to, std::vector<Moved>* all);
  void MoveFolder(const StepPaths& ids, bool exchange,
                  const std::function<void(PathId, PathId)>& moved);

  PathTable& paths_;
  std::vector<PathFacts> facts_;
};

}  // namespace tracefs::build
