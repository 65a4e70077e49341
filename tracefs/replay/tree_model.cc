#include "tracefs/replay/tree_model.h"

#include <sys/stat.h>

#include <algorithm>

namespace tracefs::replay {

TreeModel::TreeModel() {
  const NodeId root = Add(0);
  Node& node = nodes_[root];
  node.mode = S_IFDIR | 0755;
  node.slot = kRootSlot;
  node.initial = true;
}

NodeId TreeModel::Add(uint64_t inode) {
  NodeId id;
  if (free_nodes_.empty()) {
    id = static_cast<NodeId>(nodes_.size());
    nodes_.emplace_back();
  } else {
    id = free_nodes_.back();
    free_nodes_.pop_back();
    nodes_[id] = {};
  }
  nodes_[id].alive = true;
  nodes_[id].serial = ++last_serial_;
  peak_ = std::max(peak_, ++live_);
  if (inode != 0) SetInode(id, inode);
  return id;
}

NodeId TreeModel::ByInode(uint64_t inode) const {
  if (inode == 0) return kNoNode;
  return by_inode_.Find(Mix(inode),
                        [&](uint32_t id) { return nodes_[id].inode == inode; });
}

void TreeModel::SetInode(NodeId id, uint64_t inode) {
  const auto take = [&](NodeId from) {
    by_inode_.Remove(Mix(nodes_[from].inode), from);
    nodes_[from].inode = 0;
  };
  if (nodes_[id].inode != 0) take(id);
  if (const NodeId other = ByInode(inode); other != kNoNode) take(other);
  nodes_[id].inode = inode;
  if (inode == 0) return;
  by_inode_.Add(Mix(inode), id);
  if (IsDropped(inode)) dropped_[Mix(inode) % kMostDropped] = 0;
}

LinkId TreeModel::Find(NodeId parent, std::string_view name) const {
  return by_name_.Find(NameHash(parent, name), [&](uint32_t id) {
    return links_[id].parent == parent && links_[id].name == name;
  });
}

void TreeModel::AddLink(NodeId parent, std::string_view name, NodeId node) {
  LinkId id;
  if (free_links_.empty()) {
    id = static_cast<LinkId>(links_.size());
    links_.emplace_back();
  } else {
    id = free_links_.back();
    free_links_.pop_back();
  }
  Link& link = links_[id];
  link.parent = parent;
  link.node = node;
  link.next = nodes_[node].first_link;
  link.name = name;
  nodes_[node].first_link = id;
  by_name_.Add(NameHash(parent, name), id);
}

void TreeModel::RemoveLink(LinkId id) {
  Link& link = links_[id];
  by_name_.Remove(NameHash(link.parent, link.name), id);
  LinkId* at = &nodes_[link.node].first_link;
  while (*at != id) at = &links_[*at].next;
  *at = link.next;
  link.node = kNoNode;
  link.parent = kNoNode;
  link.name.clear();
  free_links_.push_back(id);
}

void TreeModel::DropIfGone(NodeId id) {
  Node& node = nodes_[id];
  if (!node.alive || id == kRootNode || node.first_link != kNoLink ||
      node.open_count != 0) {
    return;
  }
  if (const uint64_t inode = node.inode; inode != 0) {
    SetInode(id, 0);
    if (dropped_.empty()) dropped_.resize(kMostDropped);
    dropped_[Mix(inode) % kMostDropped] = inode;
  }
  node.alive = false;
  --live_;
  free_nodes_.push_back(id);
}

bool TreeModel::PathOf(NodeId id, std::string* path) const {
  // Names that lead round in a circle come of a trace that lies.
  constexpr int kDeepest = 4096;
  std::vector<const std::string*> names;
  for (; id != kRootNode; id = links_[nodes_[id].first_link].parent) {
    if (nodes_[id].first_link == kNoLink || names.size() == kDeepest) {
      return false;
    }
    names.push_back(&links_[nodes_[id].first_link].name);
  }
  path->clear();
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    if (!path->empty()) path->push_back('/');
    *path += **name;
  }
  return true;
}

void TreeModel::ForEachLink(
    const std::function<void(const Link&)>& visit) const {
  for (const Link& link : links_) {
    if (link.node != kNoNode) visit(link);
  }
}

size_t TreeModel::bytes() const {
  size_t names = 0;
  for (const Link& link : links_) {
    if (link.name.capacity() > 15) names += link.name.capacity() + 17;
  }
  return nodes_.size() * sizeof(Node) + links_.size() * sizeof(Link) + names +
         by_inode_.bytes() + by_name_.bytes() +
         (free_nodes_.capacity() + free_links_.capacity()) * sizeof(uint32_t);
}

}  // namespace tracefs::replay
