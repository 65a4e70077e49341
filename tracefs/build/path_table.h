// PathTable: every path of a trace once, as a small number. Paths share their
// directories, so that a million of them need some 50 bytes each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/base/hash_table.h"

namespace tracefs::build {

// Used by one thread.
class PathTable {
 public:
  using Id = uint32_t;
  static constexpr Id kNone = UINT32_MAX;
  static constexpr Id kRoot = 0;

  PathTable();

  // The number of a path. A path that does not begin with '/' is below the
  // root, too; empty components and "." are left out, ".." is taken back as
  // long as something is there: a path is known by one spelling.
  Id Intern(std::string_view path);
  // The same below a directory.
  Id InternBelow(Id directory, std::string_view path);
  // One name below a directory; the next number if it was not there yet.
  Id Add(Id directory, std::string_view name) { return Child(directory, name); }
  // kNone if it was never interned.
  Id Find(std::string_view path) const;

  std::string Text(Id id) const;
  void AppendText(Id id, std::string* out) const;
  std::string_view Name(Id id) const;
  Id Parent(Id id) const { return nodes_[id].parent; }
  bool IsBelow(Id id, Id directory) const;

  // Every path in a directory: for (Id c = FirstIn(d); c != kNone; c =
  // NextIn(c)).
  Id FirstIn(Id directory) const { return nodes_[directory].first_child; }
  Id NextIn(Id id) const { return nodes_[id].next_sibling; }

  size_t size() const { return nodes_.size(); }

 private:
  struct Node {
    Id parent;
    Id first_child;
    Id next_sibling;
    uint32_t name_size;
    uint64_t name_offset;
  };

  uint64_t Hash(Id parent, std::string_view name) const;
  Id Lookup(Id parent, std::string_view name) const;
  Id Child(Id parent, std::string_view name);

  std::vector<Node> nodes_;
  std::string names_;
  HashIndex by_name_;
  uint64_t seed_;
  // The directory of the last path: most are like the one before.
  std::string last_directory_;
  Id last_id_ = kRoot;
};

}  // namespace tracefs::build
