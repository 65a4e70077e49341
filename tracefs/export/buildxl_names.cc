#include "tracefs/export/buildxl_names.h"

#include <errno.h>
#include <linux/fs.h>
#include <sys/stat.h>

#include <algorithm>

namespace tracefs::buildxl {

using build::PathTable;

void Names::Set(PathTable::Id id, State state) {
  if (states_.size() <= id) states_.resize(id + size_t{1}, State::kUnknown);
  states_[id] = state;
}

// It, and all above it.
void Names::Exists(PathTable::Id id, State state) {
  Set(id, state);
  while (id != PathTable::kRoot) {
    id = paths_.Parent(id);
    if (Get(id) == State::kDirectory) return;
    Set(id, State::kDirectory);
  }
}

void Names::Take(const build::FileStep& step) {
  if (step.path.empty()) return;
  const bool is_directory = S_ISDIR(step.mode);
  const State state = is_directory ? State::kDirectory : State::kFile;
  if (step.error == ENOENT && step.op == Op::lookup_) {
    const PathTable::Id id = paths_.Find(step.path);
    if (id != PathTable::kNone) Set(id, State::kUnknown);
    return;
  }
  if (step.error != 0) return;
  switch (step.op) {
    case Op::lookup_:
    case Op::open_:
    case Op::create_:
    case Op::mknod_:
    case Op::symlink_:
      Exists(paths_.Intern(step.path), state);
      break;
    case Op::mkdir_:
    case Op::opendir_:
    case Op::readdir_:
      Exists(paths_.Intern(step.path), State::kDirectory);
      break;
    case Op::link_:
      if (!step.path2.empty()) Exists(paths_.Intern(step.path2), state);
      break;
    case Op::unlink_:
    case Op::rmdir_:
      Set(paths_.Intern(step.path), State::kUnknown);
      break;
    case Op::getattr_:
    case Op::setattr_:
    case Op::readlink_:
    case Op::rename_:
    case Op::tmpfile_:
    case Op::read_:
    case Op::write_:
    case Op::flush_:
    case Op::release_:
    case Op::fsync_:
    case Op::releasedir_:
    case Op::fsyncdir_:
    case Op::statfs_:
    case Op::setxattr_:
    case Op::getxattr_:
    case Op::listxattr_:
    case Op::removexattr_:
    case Op::access_:
    case Op::getlk_:
    case Op::setlk_:
    case Op::flock_:
    case Op::fallocate_:
    case Op::lseek_:
    case Op::copy_file_range_:
    case Op::ioctl_:
    case Op::poll_:
    case Op::statx_:
      break;
  }
}

std::vector<PathTable::Id> Names::TreeOf(PathTable::Id top,
                                         size_t* budget) const {
  std::vector<PathTable::Id> tree;
  std::vector<PathTable::Id> next = {top};
  while (!next.empty()) {
    const PathTable::Id id = next.back();
    next.pop_back();
    if (id != top && Get(id) == State::kUnknown) continue;
    tree.push_back(id);
    std::vector<PathTable::Id> below;
    for (PathTable::Id c = paths_.FirstIn(id); c != PathTable::kNone;
         c = paths_.NextIn(c)) {
      if (*budget == 0) return tree;
      --*budget;
      below.push_back(c);
    }
    std::ranges::sort(below, [this](PathTable::Id a, PathTable::Id b) {
      return paths_.Name(a) > paths_.Name(b);  // the last one is taken first
    });
    next.insert(next.end(), below.begin(), below.end());
  }
  return tree;
}

void Names::AddTree(PathTable::Id from, PathTable::Id to, size_t* budget,
                    std::vector<Moved>* moved) {
  const std::vector<PathTable::Id> tree = TreeOf(from, budget);
  const size_t top_size = paths_.Text(from).size();
  for (size_t i = 0; i < tree.size(); ++i) {
    std::string below = paths_.Text(tree[i]).substr(top_size);
    if (below.starts_with('/')) below.erase(0, 1);
    const bool holds_next =
        i + 1 < tree.size() && paths_.Parent(tree[i + 1]) == tree[i];
    moved->push_back({tree[i], paths_.InternBelow(to, below),
                      holds_next || Get(tree[i]) == State::kDirectory});
  }
}

std::vector<Names::Moved> Names::Rename(const build::FileStep& step,
                                        size_t* budget) {
  const PathTable::Id from = paths_.Intern(step.path);
  const PathTable::Id to = paths_.Intern(step.path2);
  if (paths_.IsBelow(to, from) || paths_.IsBelow(from, to)) {
    return {};  // no kernel does that
  }
  // Both trees before anything moves.
  std::vector<Moved> moved;
  AddTree(from, to, budget, &moved);
  // The kernel tells the type of what is renamed itself.
  if (step.mode != 0) moved.front().is_directory = S_ISDIR(step.mode);
  if ((step.flags & RENAME_EXCHANGE) != 0) AddTree(to, from, budget, &moved);
  for (const Moved& m : moved) Set(m.from, State::kUnknown);
  for (const Moved& m : moved) {
    Exists(m.to, m.is_directory ? State::kDirectory : State::kFile);
  }
  return moved;
}

}  // namespace tracefs::buildxl
