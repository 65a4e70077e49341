#include "tracefs/build/path_table.h"

#include <array>
#include <functional>
#include <random>

namespace tracefs::build {
namespace {

// Calls `use` with each component that means something.
template <typename Use>
void ForEachComponent(std::string_view path, Use use) {
  while (!path.empty()) {
    const size_t end = path.find('/');
    const std::string_view name = path.substr(0, end);
    if (!name.empty() && name != ".") use(name);
    if (end == path.npos) return;
    path.remove_prefix(end + 1);
  }
}

// Whether a path is as it would be written from the root: its directory may
// then be looked up as a text.
bool IsPlain(std::string_view path) {
  return path.starts_with('/') && path.find("//") == path.npos &&
         path.find("/.") == path.npos;
}

}  // namespace

// Names come from the makers of the files: without the seed, an attacker could
// make all of them meet in one slot.
PathTable::PathTable()
    : seed_((uint64_t{std::random_device()()} << 32) | std::random_device()()) {
  nodes_.push_back({kNone, kNone, kNone, 0, 0});
}

uint64_t PathTable::Hash(Id parent, std::string_view name) const {
  uint64_t hash = std::hash<std::string_view>()(name) ^ seed_;
  hash ^= (uint64_t{parent} + 1) * 0x9e3779b97f4a7c15;
  hash *= 0xff51afd7ed558ccd;
  return hash ^ (hash >> 32);
}

PathTable::Id PathTable::Lookup(Id parent, std::string_view name) const {
  static_assert(kNone == HashIndex::kNone);
  return by_name_.Find(Hash(parent, name), [&](Id id) {
    return nodes_[id].parent == parent && Name(id) == name;
  });
}

PathTable::Id PathTable::Child(Id parent, std::string_view name) {
  const auto fresh = static_cast<Id>(nodes_.size());
  const Id id = by_name_.FindOrAdd(Hash(parent, name), fresh, [&](Id known) {
    return nodes_[known].parent == parent && Name(known) == name;
  });
  if (id != fresh) return id;
  nodes_.push_back({parent, kNone, nodes_[parent].first_child,
                    static_cast<uint32_t>(name.size()), names_.size()});
  nodes_[parent].first_child = id;
  names_ += name;
  return id;
}

PathTable::Id PathTable::Intern(std::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash != path.npos && slash + 1 < path.size() && IsPlain(path)) {
    const std::string_view directory = path.substr(0, slash);
    if (directory != last_directory_) {
      last_id_ = InternBelow(kRoot, directory);
      last_directory_ = directory;
    }
    return Child(last_id_, path.substr(slash + 1));
  }
  return InternBelow(kRoot, path);
}

PathTable::Id PathTable::InternBelow(Id directory, std::string_view path) {
  if (path.starts_with('/')) directory = kRoot;
  ForEachComponent(path, [&](std::string_view name) {
    if (name != "..") {
      directory = Child(directory, name);
    } else if (directory != kRoot) {
      directory = Parent(directory);
    }
  });
  return directory;
}

PathTable::Id PathTable::Find(std::string_view path) const {
  Id at = kRoot;
  ForEachComponent(path, [&](std::string_view name) {
    if (at == kNone) return;
    if (name != "..") {
      at = Lookup(at, name);
    } else if (at != kRoot) {
      at = Parent(at);
    }
  });
  return at;
}

std::string_view PathTable::Name(Id id) const {
  return std::string_view(names_).substr(nodes_[id].name_offset,
                                         nodes_[id].name_size);
}

std::string PathTable::Text(Id id) const {
  std::string text;
  AppendText(id, &text);
  return text;
}

void PathTable::AppendText(Id id, std::string* out) const {
  if (id == kRoot) {
    *out += '/';
    return;
  }
  size_t size = 0;
  for (Id at = id; at != kRoot; at = Parent(at)) {
    size += nodes_[at].name_size + 1;
  }
  // From its end: parents are known from below only.
  size_t end = out->size() + size;
  out->resize(end);
  for (Id at = id; at != kRoot; at = Parent(at)) {
    const std::string_view name = Name(at);
    end -= name.size();
    name.copy(out->data() + end, name.size());
    (*out)[--end] = '/';
  }
}

bool PathTable::IsBelow(Id id, Id directory) const {
  while (id != directory && id != kRoot) id = Parent(id);
  return id == directory;
}

}  // namespace tracefs::build
