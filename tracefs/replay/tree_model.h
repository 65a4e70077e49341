// TreeModel: what a trace has told of its tree so far: inodes, their names and
// attributes, directories. Kept small: less than 200 bytes for each inode that
// is alive, with a name of up to 15 bytes.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/base/hash_table.h"
#include "tracefs/replay/action.h"

namespace tracefs::replay {

using NodeId = uint32_t;
using LinkId = uint32_t;
inline constexpr NodeId kNoNode = UINT32_MAX;
inline constexpr LinkId kNoLink = UINT32_MAX;
inline constexpr NodeId kRootNode = 0;

struct Node {
  uint64_t inode = 0;   // 0: not known
  uint64_t serial = 0;  // its own, given to no other node
  uint64_t size = 0;
  uint64_t changing_until_ns = 0;  // the end of the last write or truncation
  LinkId first_link = kNoLink;
  uint32_t slot = kNoSlot;         // of a directory
  uint32_t open_handle = kNoSlot;  // one of its open handles
  uint32_t open_count : 31 = 0;
  uint32_t looked_at : 1 = false;  // its attributes, since they last changed
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint32_t rdev = 0;
  uint16_t mode = 0;  // type and permissions
  uint8_t known = 0;  // TreeEntry::KnownBit
  bool alive : 1 = false;
  bool initial : 1 = false;        // is in the tree to begin with
  bool complete : 1 = false;       // directory: all its names are known
  bool lacks_content : 1 = false;  // bytes were read that are not in the trace
  bool written : 1 = false;        // by the plan
  bool touched : 1 = false;        // the plan knows it
  bool locked : 1 = false;         // it has been locked
  bool lacks_bytes : 1 = false;    // somewhere it has bytes that are not in the
                                   // trace
  bool has_xattrs : 1 = false;     // its extended attributes are known
  bool more_names : 1 = false;     // than the trace has told of
};

struct Link {
  NodeId parent = kNoNode;
  NodeId node = kNoNode;
  LinkId next = kNoLink;  // of the same node
  std::string name;
};

// Used by one thread.
class TreeModel {
 public:
  TreeModel();

  Node& node(NodeId id) { return nodes_[id]; }
  const Node& node(NodeId id) const { return nodes_[id]; }
  const Link& link(LinkId id) const { return links_[id]; }

  NodeId Add(uint64_t inode);
  NodeId ByInode(uint64_t inode) const;
  // Gives a node its inode number; what had it so far loses it.
  void SetInode(NodeId id, uint64_t inode);

  // kNoLink: there is no such name, or none that is known.
  LinkId Find(NodeId parent, std::string_view name) const;
  void AddLink(NodeId parent, std::string_view name, NodeId node);
  void RemoveLink(LinkId link);
  // Forgets a node with no name and no handle.
  void DropIfGone(NodeId id);
  // Whether the file of that number was dropped, and nothing has got the number
  // since. Knows those dropped last: what has no name any more is used for a
  // moment only, by a process that found it before.
  bool IsDropped(uint64_t inode) const {
    return inode != 0 && !dropped_.empty() &&
           dropped_[Mix(inode) % kMostDropped] == inode;
  }

  // Its path in DIR, without a '/' before it; empty for the root. False: it has
  // none.
  bool PathOf(NodeId id, std::string* path) const;
  // Calls `visit` with each name there is.
  void ForEachLink(const std::function<void(const Link&)>& visit) const;

  size_t live_nodes() const { return live_; }
  size_t peak_nodes() const { return peak_; }
  size_t bytes() const;

 private:
  static constexpr size_t kMostDropped = 4096;

  static uint64_t Mix(uint64_t x) {
    x = (x ^ (x >> 32)) * 0x9e3779b97f4a7c15;
    return x ^ (x >> 29);
  }
  static uint64_t NameHash(NodeId parent, std::string_view name) {
    return Mix(std::hash<std::string_view>()(name) + parent * 31ull);
  }

  std::deque<Node> nodes_;
  std::deque<Link> links_;
  std::vector<NodeId> free_nodes_;
  std::vector<LinkId> free_links_;
  std::vector<uint64_t> dropped_;  // numbers, by hash; empty before the first
  HashIndex by_inode_;
  HashIndex by_name_;
  uint64_t last_serial_ = 0;
  size_t live_ = 0;
  size_t peak_ = 0;
};

}  // namespace tracefs::replay
