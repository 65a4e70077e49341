#include "tracefs/query/path_tree.h"

#include "tracefs/base/text.h"

namespace tracefs::query {
namespace {

// Takes the next part of a path; empty at its end.
std::string_view TakePart(std::string_view* path) {
  while (!path->empty()) {
    const std::string_view part = TakeUpTo(*path, '/');
    if (!part.empty()) return part;
  }
  return {};
}

}  // namespace

PathTree::Node PathTree::Child(Node parent, std::string_view name) const {
  const auto at = index_.find({parent, name});
  return at == index_.end() ? kNone : at->second;
}

PathTree::Node PathTree::Find(std::string_view path) const {
  Node node = 0;
  for (;;) {
    const std::string_view part = TakePart(&path);
    if (part.empty()) return node == 0 ? kNone : node;
    node = Child(node, part);
    if (node == kNone) return kNone;
  }
}

PathTree::Node PathTree::Make(std::string_view path) {
  Node node = 0;
  for (;;) {
    const std::string_view part = TakePart(&path);
    if (part.empty()) return node == 0 ? kNone : node;
    const Node child = Child(node, part);
    if (child != kNone) {
      node = child;
      continue;
    }
    if (index_.size() >= kMost) {
      Prune(node);
      return kNone;
    }
    Node made = static_cast<Node>(nodes_.size());
    if (free_.empty()) {
      nodes_.emplace_back();
    } else {
      made = free_.back();
      free_.pop_back();
    }
    Place(made, node, part);
    node = made;
  }
}

std::string PathTree::PathOf(Node node) const {
  std::vector<Node> line;
  for (; node != 0 && node != kNone && line.size() < kMaxDepth;
       node = nodes_[node].parent) {
    line.push_back(node);
  }
  std::string path;
  for (auto at = line.rbegin(); at != line.rend(); ++at) {
    path += "/" + nodes_[*at].name;
  }
  return path;
}

void PathTree::Unname(Node node) {
  Entry& entry = nodes_[node];
  if (!entry.named) return;
  index_.erase({entry.parent, entry.name});
  entry.named = false;
  ++entry.renamed;
  if (entry.children != 0) ++directories_moved_;
}

// Where another one has that name, it loses it.
void PathTree::Place(Node node, Node parent, std::string_view name) {
  const Node other = Child(parent, name);
  if (other != kNone) Unname(other);
  Entry& entry = nodes_[node];
  entry.parent = parent;
  entry.name = name;
  entry.named = true;
  ++nodes_[parent].children;
  index_.emplace(Key{parent, entry.name}, node);
  if (other != kNone) Prune(other);
}

bool PathTree::IsBelow(Node node, Node above) const {
  for (size_t depth = 0; node != kNone; node = nodes_[node].parent, ++depth) {
    if (node == above || depth == kMaxDepth) return true;
  }
  return false;
}

void PathTree::Prune(Node node) {
  while (node != 0 && nodes_[node].number == 0 && nodes_[node].children == 0) {
    Unname(node);
    const Node parent = nodes_[node].parent;
    nodes_[node] = {.name = {}, .renamed = nodes_[node].renamed};
    free_.push_back(node);
    --nodes_[parent].children;
    node = parent;
  }
}

void PathTree::Move(std::string_view from, std::string_view to) {
  const Node node = Find(from);
  const size_t slash = to.rfind('/');
  if (node == kNone || slash == std::string_view::npos) return;
  const std::string name(to.substr(slash + 1));
  const std::string_view folder = to.substr(0, slash);
  const Node parent = folder.empty() ? 0 : Make(folder);
  if (parent == kNone || name.empty() || IsBelow(parent, node)) {
    if (parent != kNone) Prune(parent);
    return;
  }
  Unname(node);
  const Node old = nodes_[node].parent;
  Place(node, parent, name);
  --nodes_[old].children;
  Prune(old);
}

void PathTree::Exchange(std::string_view a, std::string_view b) {
  const Node one = Make(a);
  const Node two = Make(b);
  if (one == kNone || two == kNone || IsBelow(one, two) || IsBelow(two, one)) {
    if (one != kNone) Prune(one);
    if (two != kNone && two != one) Prune(two);
    return;
  }
  const Entry first = nodes_[one];
  const Entry second = nodes_[two];
  Unname(one);
  Unname(two);
  Place(one, second.parent, second.name);
  Place(two, first.parent, first.name);
  --nodes_[first.parent].children;
  --nodes_[second.parent].children;
  Prune(one);
  Prune(two);
}

void PathTree::Drop(Node node) {
  if (node == kNone) return;
  nodes_[node].number = 0;
  Prune(node);
}

}  // namespace tracefs::query
