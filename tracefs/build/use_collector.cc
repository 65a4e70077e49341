#include "tracefs/build/use_collector.h"

#include <algorithm>
#include <utility>

namespace tracefs::build {
namespace {

void Note(uint64_t time_ns, uint64_t* first) {
  if (*first == 0 || time_ns < *first) *first = time_ns;
}

// As of an open that does the same.
uint8_t ModeOf(uint16_t access) {
  if ((access & kWrite) == 0) return 0;
  return (access & kRead) == 0 ? 1 : 2;
}

// The mode of all opens of a file: what differs is both.
void AddMode(uint8_t mode, Use* use) {
  if (use->open_mode == Use::kNotOpened) {
    use->open_mode = mode;
  } else if (use->open_mode != mode) {
    use->open_mode = 2;
  }
}

void AddAccess(uint16_t access, uint64_t begin_ns, uint64_t end_ns, Use* use) {
  Note(begin_ns, &use->first_ns);
  use->last_ns = std::max(use->last_ns, end_ns);
  if ((access & kRead) != 0) {
    Note(begin_ns, &use->first_read_ns);
    use->last_read_ns = std::max(use->last_read_ns, begin_ns);
  }
  if ((access & kWrite) != 0) {
    Note(begin_ns, &use->first_write_ns);
    use->last_write_ns = std::max(use->last_write_ns, end_ns);
  }
  if ((access & kAbsent) != 0) Note(begin_ns, &use->first_absent_ns);
  use->access |= access;
}

// What CAS takes for opens of both names.
bool CountsAsOpen(Op op) {
  return op == Op::rename_ || op == Op::link_ || op == Op::symlink_;
}

}  // namespace

void UseCollector::Add(ExecutionId execution, const FileStep& step,
                       const StepPaths& paths) {
  const AccessPair access = AccessOf(step);
  const SizePair sizes = SizesOf(step);
  const uint64_t end_ns = step.time_ns + step.duration_ns;
  const bool closes = step.op == Op::release_;
  if (paths.path != PathTable::kNone && (access.path != 0 || closes)) {
    Uses& uses = running_[execution];
    if (closes) {
      const auto opened = uses.find(paths.path);
      if (opened == uses.end()) return;
      // What was written may have been until now.
      AddAccess(opened->second.Has(kWrite) ? kWrite : kNoAccess, step.time_ns,
                end_ns, &opened->second);
      return;
    }
    Use& use = uses[paths.path];
    use.path = paths.path;
    AddAccess(access.path, step.time_ns, end_ns, &use);
    if (step.mode != 0) use.type = static_cast<uint8_t>(step.mode >> 12);
    use.size = std::max(use.size, sizes.path);
    const bool opens = step.op == Op::open_ || step.op == Op::create_;
    use.opened |= step.error == 0 &&
                  (opens || step.op == Op::opendir_ || CountsAsOpen(step.op));
    if (step.error == 0 && opens) {
      const unsigned mode = OpenMode(step.flags);
      AddMode(static_cast<uint8_t>(std::min(mode, 2u)), &use);
    } else if ((access.path & (kRead | kWrite)) != 0) {
      // Reads, writes and copies count where the open was not recorded.
      if (CountsAsOpen(step.op) || use.open_mode == Use::kNotOpened) {
        AddMode(ModeOf(access.path), &use);
      }
    }
  }
  if (paths.path2 != PathTable::kNone && access.path2 != 0) {
    Use& use = running_[execution][paths.path2];
    use.path = paths.path2;
    AddAccess(access.path2, step.time_ns, end_ns, &use);
    if (step.mode != 0) use.type = static_cast<uint8_t>(step.mode >> 12);
    use.size = std::max(use.size, sizes.path2);
    const bool opens =
        CountsAsOpen(step.op) || use.open_mode == Use::kNotOpened;
    use.opened |= CountsAsOpen(step.op);
    if ((access.path2 & kFolder) == 0 && opens) {
      AddMode(ModeOf(access.path2), &use);
    }
  }
}

void UseCollector::Add(ExecutionId execution, PathId path, uint16_t access,
                       uint64_t time_ns) {
  Use& use = running_[execution][path];
  use.path = path;
  use.opened = true;
  AddAccess(access, time_ns, time_ns, &use);
  if ((access & kRead) != 0) AddMode(0, &use);
  if ((access & kWrite) != 0) AddMode(1, &use);
}

void UseCollector::Inherit(ExecutionId execution, PathId path,
                           uint64_t time_ns) {
  Use& use = running_[execution][path];
  use.path = path;
  AddAccess(kWrite, time_ns, time_ns, &use);
  AddMode(1, &use);
}

std::vector<Use> UseCollector::Take(ExecutionId execution) {
  std::vector<Use> uses;
  const auto found = running_.find(execution);
  if (found == running_.end()) return uses;
  uses.reserve(found->second.size());
  for (const auto& [path, use] : found->second) uses.push_back(use);
  running_.erase(found);
  std::sort(uses.begin(), uses.end(),
            [](const Use& a, const Use& b) { return a.path < b.path; });
  return uses;
}

}  // namespace tracefs::build
