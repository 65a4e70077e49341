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
  const bool exchange = two && Exchanges(step);
  if (step.op == Op::rename_) MoveFolder(ids, exchange, moved);
  if (exchange) {
    // Of the other one the step says nothing.
    PathFacts& mine = At(ids.path);
    std::swap(mine, At(ids.path2));
    mine.gone = false;
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

// What lies in a directory, each behind what it lies in.
void FactsTable::AddFolder(PathId from, PathId to, std::vector<Moved>* all) {
  const auto add = [&](PathId folder, size_t in) {
    for (PathId child = paths_.FirstIn(folder); child != PathTable::kNone;
         child = paths_.NextIn(child)) {
      if (!At(child).gone) all->push_back({child, to, in, At(child)});
    }
  };
  size_t at = all->size();
  add(from, SIZE_MAX);
  for (; at < all->size(); ++at) add((*all)[at].from, at);
}

void FactsTable::MoveFolder(const StepPaths& ids, bool exchange,
                            const std::function<void(PathId, PathId)>& moved) {
  // Into itself it cannot be moved, whatever a trace says.
  if (ids.path2 == PathTable::kNone || paths_.IsBelow(ids.path2, ids.path) ||
      (exchange && paths_.IsBelow(ids.path, ids.path2))) {
    return;
  }
  // All of it before anything has a new name.
  std::vector<Moved> all;
  AddFolder(ids.path, ids.path2, &all);
  if (exchange) AddFolder(ids.path2, ids.path, &all);
  for (Moved& one : all) {
    one.to = paths_.InternBelow(one.in == SIZE_MAX ? one.to : all[one.in].to,
                                std::string(paths_.Name(one.from)));
    At(one.from).gone = true;
  }
  for (const Moved& one : all) {
    At(one.to) = one.facts;
    moved(one.from, one.to);
  }
}

std::vector<PathFacts> FactsTable::Take() {
  facts_.resize(paths_.size());
  return std::move(facts_);
}

}  // namespace tracefs::build
