#include "tracefs/import/file_tree.h"

#include <sys/stat.h>

#include <algorithm>
#include <vector>

namespace tracefs::import {
namespace {

using replay::kNoLink;
using replay::LinkId;

constexpr size_t kMostPathBytes = 4096;
constexpr int kMostLinks = 40;

bool IsBelow(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) &&
         (path.size() == folder.size() || path[folder.size()] == '/');
}

}  // namespace

std::string Normal(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const size_t end = std::min(path.find('/'), path.size());
    const std::string_view part = path.substr(0, end);
    path.remove_prefix(std::min(end + 1, path.size()));
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      if (!parts.empty()) parts.pop_back();
    } else {
      parts.push_back(part);
    }
  }
  std::string normal;
  for (const std::string_view part : parts) (normal += '/') += part;
  return normal.empty() ? "/" : normal;
}

FileTree::FileTree(std::string_view top, bool special)
    : special_(special), top_(Normal(top)) {
  if (top_ == "/") top_.clear();
  replay::Node& root = tree_.node(kRootNode);
  root.mode = S_IFDIR | 0755;
  tree_.SetInode(kRootNode, next_inode_++);
}

std::optional<std::string> FileTree::Below(std::string_view path) const {
  if (!IsBelow(path, top_)) return std::nullopt;
  if (top_.empty() && !special_) {
    for (const char* special : {"/dev", "/proc", "/sys"}) {
      if (IsBelow(path, special)) return std::nullopt;
    }
  }
  return std::string(path.substr(top_.size()));
}

Spot FileTree::Find(std::string_view path, bool follow) const {
  Spot spot;
  if (path.size() > kMostPathBytes || !path.starts_with('/') ||
      path.find('\0') != path.npos) {
    spot.state = Spot::State::kRefused;
    return spot;
  }
  // A path outside may lead inside through an unknown symbolic link.
  std::string left = Normal(path);
  const std::optional<std::string> below = Below(left);
  if (!below) {
    spot.state = Spot::State::kOutside;
    return spot;
  }
  left = *below;
  NodeId at = kRootNode;
  std::string so_far = top_;
  int links = 0;
  spot.node = kRootNode;
  spot.state = Spot::State::kFound;
  while (!left.empty()) {
    left.erase(0, 1);
    const size_t end = std::min(left.find('/'), left.size());
    const std::string name = left.substr(0, end);
    left.erase(0, end);
    if (name.size() > 255) {
      spot.state = Spot::State::kRefused;
      return spot;
    }
    spot.parent = at;
    spot.name = name;
    spot.node = kNoNode;
    const LinkId link = tree_.Find(at, name);
    if (link == kNoLink) {
      spot.state = left.empty() ? Spot::State::kMissing : Spot::State::kUnknown;
      return spot;
    }
    const NodeId found = tree_.link(link).node;
    const auto target = targets_.find(tree_.node(found).inode);
    if (target != targets_.end() && (!left.empty() || follow)) {
      if (++links > kMostLinks) {
        spot.state = Spot::State::kRefused;
        return spot;
      }
      const std::string to = target->second.starts_with('/')
                                 ? target->second
                                 : so_far + '/' + target->second;
      const std::optional<std::string> inside = Below(Normal(to + left));
      if (!inside || inside->size() > kMostPathBytes) {
        spot.state = Spot::State::kOutside;
        return spot;
      }
      left = *inside;
      at = kRootNode;
      so_far = top_;
      spot.node = kRootNode;
      spot.parent = kNoNode;
      spot.name.clear();
      continue;
    }
    spot.node = at = found;
    (so_far += '/') += name;
  }
  return spot;
}

NodeId FileTree::Make(uint32_t mode) {
  const NodeId id = tree_.Add(next_inode_++);
  tree_.node(id).mode = static_cast<uint16_t>(mode);
  return id;
}

void FileTree::Link(NodeId parent, std::string_view name, NodeId node) {
  Unlink(parent, name);
  tree_.AddLink(parent, name, node);
}

void FileTree::Forget(NodeId id) {
  if (id == kRootNode) return;
  const replay::Node& node = tree_.node(id);
  if (node.first_link != kNoLink || node.open_count != 0) return;
  targets_.erase(node.inode);
  tree_.DropIfGone(id);
}

void FileTree::Unlink(NodeId parent, std::string_view name) {
  const LinkId link = tree_.Find(parent, name);
  if (link == kNoLink) return;
  const NodeId id = tree_.link(link).node;
  tree_.RemoveLink(link);
  if (tree_.node(id).first_link != kNoLink) ++epoch_;
  Forget(id);
}

void FileTree::Rename(NodeId parent, std::string_view name, NodeId new_parent,
                      std::string_view new_name, bool exchange) {
  const LinkId from = tree_.Find(parent, name);
  if (from == kNoLink) return;
  const LinkId to = tree_.Find(new_parent, new_name);
  const NodeId moved = tree_.link(from).node;
  const NodeId other = to == kNoLink ? kNoNode : tree_.link(to).node;
  if (moved == other) return;  // two names of one file: nothing is done
  if (to != kNoLink) tree_.RemoveLink(to);
  tree_.RemoveLink(tree_.Find(parent, name));
  tree_.AddLink(new_parent, new_name, moved);
  if (other != kNoNode) {
    if (exchange) {
      tree_.AddLink(parent, name, other);
    } else {
      Forget(other);
    }
  }
  ++epoch_;
}

void FileTree::SetTarget(NodeId node, std::string_view target) {
  tree_.node(node).mode = S_IFLNK | 0777;
  targets_[tree_.node(node).inode] = target.substr(0, kMostPathBytes);
}

void FileTree::Closed(NodeId id) {
  replay::Node& node = tree_.node(id);
  if (node.open_count != 0) --node.open_count;
  Forget(id);
}

bool FileTree::LinkOf(uint64_t inode, NodeLink* link) {
  const NodeId id = tree_.ByInode(inode);
  if (id == kNoNode) return false;
  if (id == kRootNode) {
    *link = {};
    return true;
  }
  const LinkId first = tree_.node(id).first_link;
  if (first == kNoLink) return false;
  link->parent = tree_.node(tree_.link(first).parent).inode;
  link->parent_version = 0;
  link->name.Set(tree_.link(first).name);
  return true;
}

void FileTree::ForEachName(uint64_t inode, void* context,
                           void (*visit)(void*, std::string_view)) {
  const NodeId id = tree_.ByInode(inode);
  if (id == kNoNode) return;
  for (LinkId link = tree_.node(id).first_link; link != kNoLink;
       link = tree_.link(link).next) {
    visit(context, tree_.link(link).name);
  }
}

}  // namespace tracefs::import
