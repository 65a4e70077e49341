#include "tracefs/build/step_paths.h"

namespace tracefs::build {

PathTable::Id StepPathFinder::Destination(const FileStep& step) const {
  const auto named = [&](uint64_t inode) {
    const auto found = inodes_.find(inode);
    return found == inodes_.end() ? PathTable::kNone : found->second;
  };
  const auto opened = handles_.find(step.fh_out);
  if (step.fh_out != 0 && opened != handles_.end()) {
    const uint64_t inode = opened->second.inode;
    // Another inode under the same number is a handle of another trace.
    if (inode == 0 || step.inode_out == 0 || inode == step.inode_out) {
      const PathTable::Id now = named(inode);
      return now != PathTable::kNone ? now : opened->second.path;
    }
  }
  return named(step.inode_out);
}

void StepPathFinder::Note(const FileStep& step, const StepPaths& ids) {
  // What has no name yet is opened by that of its directory.
  const bool opens = OpensFile(step.op) && step.op != Op::tmpfile_;
  if (opens && ids.path != PathTable::kNone) {
    if (step.fh != 0) handles_[step.fh] = {ids.path, step.inode};
    if (step.inode != 0) inodes_[step.inode] = ids.path;
  } else if (step.op == Op::release_) {
    handles_.erase(step.fh);
  } else if (step.op == Op::unlink_ || step.op == Op::rename_) {
    const auto known = inodes_.find(step.inode);
    if (known == inodes_.end() || known->second != ids.path) return;
    if (step.op == Op::rename_ && ids.path2 != PathTable::kNone) {
      known->second = ids.path2;
    } else {
      inodes_.erase(known);
    }
  }
}

StepPaths StepPathFinder::Of(const FileStep& step) {
  StepPaths ids;
  if (!step.path.empty()) ids.path = paths_.Intern(step.path);
  if (!step.path2.empty()) ids.path2 = paths_.Intern(step.path2);
  if (step.error != 0) return ids;
  if (HasTwoFiles(step.op) && ids.path2 == PathTable::kNone) {
    ids.path2 = Destination(step);
    if (ids.path2 == PathTable::kNone) ++unknown_;
  }
  Note(step, ids);
  return ids;
}

}  // namespace tracefs::build
