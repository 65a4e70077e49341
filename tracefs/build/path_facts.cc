#include "tracefs/build/path_facts.h"

#include <fcntl.h>

#include <algorithm>
#include <string>
#include <utility>

#include "tracefs/build/access.h"

namespace tracefs::build {

namespace {

// Whether an open leaves the file empty.
bool Empties(const FileStep& step) {
  return (step.op == Op::open_ && (step.flags & O_TRUNC) != 0) ||
         (step.op == Op::create_ && !step.has_attributes);
}

}  // namespace

PathFacts& FactsTable::At(PathId path) {
  if (path >= facts_.size()) facts_.resize(paths_.size());
  return facts_[path];
}

void FactsTable::Note(const FileStep& step, const StepPaths& ids,
                      const std::function<void(PathId, PathId)>& moved) {
  if (ids.path == PathTable::kNone) return;
  const AccessPair access = AccessOf(step);
  if (step.error != 0) {
    if ((access.path & kAbsent) != 0) At(ids.path).gone = true;
    return;
  }
  const bool two = ids.path2 != PathTable::kNone;
  const uint16_t bits = two ? access.path2 : access.path;
  if ((access.path & kRemove) != 0) At(ids.path).gone = true;
  if (bits == kNoAccess || (!two && (bits & kRemove) != 0)) return;
  if (step.op == Op::rename_ && paths_.FirstIn(ids.path) != PathTable::kNone) {
    MoveFolder(ids, moved);
  }
  const bool copies = HasTwoFiles(step.op);
  PathFacts& facts = At(two && !copies ? ids.path2 : ids.path);
  facts.gone = false;
  if (step.mode != 0) facts.type = static_cast<uint8_t>(step.mode >> 12);
  if (step.has_attributes) {
    facts.size = step.size;
    facts.mtime_ns = step.mtime_ns;
  }
  const SizePair sizes = SizesOf(step);
  if (step.op == Op::write_) facts.size = std::max(facts.size, sizes.path);
  if ((bits & kWrite) != 0 && Empties(step)) facts.size = 0;
  if (!copies || !two) return;
  // What the step says else is of the file that is read.
  PathFacts& written = At(ids.path2);
  written.gone = false;
  if (step.mode != 0) written.type = static_cast<uint8_t>(step.mode >> 12);
  written.size = std::max(written.size, sizes.path2);
}

void FactsTable::MoveFolder(const StepPaths& ids,
                            const std::function<void(PathId, PathId)>& moved) {
  // Into itself it cannot be moved, whatever a trace says.
  if (paths_.IsBelow(ids.path2, ids.path)) return;
  std::vector<std::pair<PathId, PathId>> left = {{ids.path, ids.path2}};
  while (!left.empty()) {
    const auto [from, to] = left.back();
    left.pop_back();
    for (PathId child = paths_.FirstIn(from); child != PathTable::kNone;
         child = paths_.NextIn(child)) {
      if (At(child).gone) continue;
      const PathId target =
          paths_.InternBelow(to, std::string(paths_.Name(child)));
      At(target) = PathFacts(At(child));
      At(child).gone = true;
      moved(child, target);
      if (paths_.FirstIn(child) != PathTable::kNone) {
        left.emplace_back(child, target);
      }
    }
  }
}

std::vector<PathFacts> FactsTable::Take() {
  facts_.resize(paths_.size());
  return std::move(facts_);
}

}  // namespace tracefs::build
