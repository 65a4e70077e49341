#include "tracefs/replay/undo_names.h"

#include <vector>

namespace tracefs::replay {
namespace {

// Names that lead round in a circle come of a plan that lies.
constexpr size_t kDeepestName = 4096;

}  // namespace

void UndoNames::Add(const Name& name, uint64_t file, uint64_t given_by) {
  if (file == kNoFile || file == kRootFile) return;
  Remove(name);
  files_[name] = {file, given_by};
  names_[file].insert(name);
}

void UndoNames::Remove(const Name& name) {
  const auto at = files_.find(name);
  if (at == files_.end()) return;
  const auto names = names_.find(at->second.file);
  names->second.erase(name);
  if (names->second.empty()) names_.erase(names);
  files_.erase(at);
}

size_t UndoNames::CountOf(uint64_t file) const {
  const auto at = names_.find(file);
  return at == names_.end() ? 0 : at->second.size();
}

bool UndoNames::IsEmpty(uint64_t dir) const {
  const auto at = files_.lower_bound({dir, {}});
  return at == files_.end() || at->first.first != dir;
}

bool UndoNames::PathOf(uint64_t file, std::string* path) const {
  path->clear();
  if (file == kRootFile) return true;
  const auto at = names_.find(file);
  return at != names_.end() && PathOf(*at->second.begin(), path);
}

bool UndoNames::PathOf(const Name& name, std::string* path) const {
  std::vector<const std::string*> parts = {&name.second};
  for (uint64_t dir = name.first; dir != kRootFile;) {
    const auto at = names_.find(dir);
    if (at == names_.end() || parts.size() == kDeepestName) return false;
    parts.push_back(&at->second.begin()->second);
    dir = at->second.begin()->first;
  }
  path->clear();
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    if (!path->empty()) path->push_back('/');
    *path += **part;
  }
  return true;
}

bool UndoNames::IsIn(uint64_t file, uint64_t dir) const {
  for (size_t depth = 0; depth < kDeepestName; ++depth) {
    if (file == dir) return true;
    const auto at = names_.find(file);
    if (at == names_.end()) return false;
    file = at->second.begin()->first;
  }
  return true;
}

}  // namespace tracefs::replay
