// UndoNames: which file has which names, by the numbers that a plan gives to
// files, and since which operation, at some point of its course.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "tracefs/replay/action.h"

namespace tracefs::replay {

// Used by one thread.
class UndoNames {
 public:
  using Name = std::pair<uint64_t, std::string>;  // directory, and name in it

  // kNoFile: there is none.
  uint64_t Find(const Name& name) const {
    const auto at = files_.find(name);
    return at == files_.end() ? kNoFile : at->second.file;
  }
  // The operation that gave it; 0: none, it was there before, or there is none.
  uint64_t GivenBy(const Name& name) const {
    const auto at = files_.find(name);
    return at == files_.end() ? 0 : at->second.given_by;
  }
  void Add(const Name& name, uint64_t file, uint64_t given_by);
  void Remove(const Name& name);
  // How many it has.
  size_t CountOf(uint64_t file) const;
  bool IsThere(uint64_t file) const {
    return file == kRootFile || CountOf(file) != 0;
  }
  bool IsEmpty(uint64_t dir) const;
  // One of its paths below DIR; false: it has none.
  bool PathOf(uint64_t file, std::string* path) const;
  bool PathOf(const Name& name, std::string* path) const;
  // Whether `file` is `dir` or in it, however deep.
  bool IsIn(uint64_t file, uint64_t dir) const;

 private:
  struct Owner {
    uint64_t file;
    uint64_t given_by;
  };
  std::map<Name, Owner> files_;
  std::unordered_map<uint64_t, std::set<Name>> names_;
};

}  // namespace tracefs::replay
