// PathTree: which number a path stands for, where directories can be renamed
// with all that is in them at the cost of one name.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tracefs::query {

// Used by one thread. Holds the names that have a number, and the directories
// above them.
class PathTree {
 public:
  using Node = uint32_t;
  static constexpr Node kNone = UINT32_MAX;
  // Names, so that deep paths cost no more memory than others.
  static constexpr size_t kMost = size_t{1} << 20;

  PathTree() { nodes_.emplace_back(); }

  // kNone if there is no such name.
  Node Find(std::string_view path) const;
  // With number 0 where it is new. kNone if it is the root, or there is no
  // room.
  Node Make(std::string_view path);
  uint64_t number(Node node) const { return nodes_[node].number; }
  void SetNumber(Node node, uint64_t number) { nodes_[node].number = number; }
  bool IsDirectory(Node node) const { return nodes_[node].children != 0; }
  // Whether the node is this name in that directory.
  bool IsAt(Node node, Node parent, std::string_view name) const {
    const Entry& entry = nodes_[node];
    return entry.named && entry.parent == parent && entry.name == name;
  }

  // A node that was found by a path, which need not be gone through again as
  // long as it still leads there.
  struct Mark {
    Node node = kNone;
    uint32_t renamed = 0;
    uint64_t moved = 0;
  };
  Mark MarkOf(Node node) const {
    return {node, nodes_[node].renamed, directories_moved_};
  }
  bool Holds(const Mark& mark) const {
    return mark.node != kNone && mark.moved == directories_moved_ &&
           mark.renamed == nodes_[mark.node].renamed;
  }
  static constexpr Node kRoot = 0;

  // All names that have a number.
  template <typename Visit>
  void ForEach(Visit&& visit) const {
    for (const auto& [key, node] : index_) {
      if (nodes_[node].number != 0) visit(node);
    }
  }

  // As it is called now. Of what lies deeper than any path goes the end.
  std::string PathOf(Node node) const;

  // What was called `from` is `to` now, with all below it. What was `to` has no
  // name any more; holders of its number drop it. Nothing happens where there
  // is nothing, or a directory would lie in itself.
  void Move(std::string_view from, std::string_view to);
  // The two change places.
  void Exchange(std::string_view a, std::string_view b);
  // The number is gone, and what is above it only for its sake.
  void Drop(Node node);

 private:
  static constexpr size_t kMaxDepth = 4096;
  struct Entry {
    Node parent = kNone;  // of the root, and of what is free
    std::string name;
    uint64_t number = 0;
    uint32_t children = 0;
    bool named = false;    // the index leads to it
    uint32_t renamed = 0;  // how often it lost a name
  };
  struct Key {
    Node parent;
    std::string_view name;  // in its entry, which stays where it is
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    size_t operator()(const Key& key) const {
      return std::hash<std::string_view>()(key.name) ^
             key.parent * size_t{0x9e3779b97f4a7c15};
    }
  };

  Node Child(Node parent, std::string_view name) const;
  // From the index; keeps its place above its children.
  void Unname(Node node);
  void Place(Node node, Node parent, std::string_view name);
  bool IsBelow(Node node, Node above) const;
  void Prune(Node node);

  // Names are views into entries: these must not move.
  std::deque<Entry> nodes_;
  std::unordered_map<Key, Node, Hash> index_;
  std::vector<Node> free_;
  uint64_t directories_moved_ = 0;
};

}  // namespace tracefs::query
