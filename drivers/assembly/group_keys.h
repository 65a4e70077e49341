// What the aggregate driver groups operations by: where their files are, and
// the keys that it counts under.
//
// Threads: each has its own.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/base/append_le.h"
#include "tracefs/event/event.h"

namespace tracefs {

// Bytes of a directory or a path in a key: what is longer is cut, so that it
// counts with its neighbours.
inline constexpr size_t kMaxKeyPathBytes = 1024;

// Where files are, as this thread saw them last. A lossy cache: one entry for
// each of a number of inodes.
class FileNames {
 public:
  struct Entry {
    uint64_t node = 0;
    uint64_t rename_epoch = 0;
    uint32_t version = 0;
    uint32_t directory_bytes = 0;  // of path: where the file is
    std::string path;              // cut; empty if paths are not wanted
    std::string name;

    std::string_view directory() const {
      return std::string_view(path).substr(0, directory_bytes);
    }
  };

  explicit FileNames(bool want_paths) : want_paths_(want_paths) {}

  bool Knows(uint64_t node, uint32_t version, uint64_t epoch) const {
    if (node == 0) return true;
    const Entry& entry = entries_[Place(node)];
    return entry.node == node && entry.version == version &&
           (!want_paths_ || entry.rename_epoch == epoch);
  }

  const Entry& Find(EventResolver* resolver, uint64_t node, uint32_t version,
                    uint64_t epoch) {
    Entry& entry = entries_[Place(node)];
    if (Knows(node, version, epoch)) return entry;
    entry.node = node;
    entry.version = version;
    entry.rename_epoch = epoch;
    entry.directory_bytes = 0;
    entry.path.clear();
    entry.name.clear();
    if (resolver == nullptr) return entry;
    if (!want_paths_) {
      NodeLink link;
      if (resolver->LinkOf(node, &link)) entry.name = link.name.view();
      return entry;
    }
    PathBuffer buffer;
    const std::string_view path = PathOf(*resolver, node, {}, buffer);
    const size_t slash = path.rfind('/');
    if (slash == std::string_view::npos) return entry;
    entry.name = path.substr(slash + 1);
    entry.path = path.substr(0, kMaxKeyPathBytes);
    entry.directory_bytes = static_cast<uint32_t>(
        std::min(std::max<size_t>(slash, 1), entry.path.size()));
    return entry;
  }

 private:
  static constexpr size_t kEntries = 512;
  static size_t Place(uint64_t node) {
    return (node * 0x9e3779b97f4a7c15u >> 32) % kEntries;
  }

  const bool want_paths_;
  std::vector<Entry> entries_ = std::vector<Entry>(kEntries);
};

// The first `depth` names of a path; 0 = all.
inline std::string_view Beginning(std::string_view path, uint32_t depth) {
  if (depth == 0) return path;
  size_t at = 0;
  for (uint32_t i = 0; i < depth; ++i) {
    at = path.find('/', at + 1);
    if (at == std::string_view::npos) return path;
  }
  return path.substr(0, at);
}

// A key as bytes: which parts there are, a bit each, then each part that is
// there: numbers as eight bytes, texts with their length before.
class KeyWriter {
 public:
  explicit KeyWriter(char* memory) : begin_(memory), at_(memory + 1) {
    *begin_ = 0;
  }
  void Number(size_t part, uint64_t number) {
    Has(part);
    StoreLe<uint64_t>(at_, number);
    at_ += 8;
  }
  void Text(size_t part, std::string_view text) {
    Has(part);
    StoreLe<uint16_t>(at_, static_cast<uint16_t>(text.size()));
    if (!text.empty()) std::memcpy(at_ + 2, text.data(), text.size());
    at_ += 2 + text.size();
  }
  // The directory, a slash unless it ends in one, and the name.
  void Path(size_t part, std::string_view directory, std::string_view name) {
    char* const size_at = at_;
    Text(part, directory);
    if (!directory.ends_with('/')) *at_++ = '/';
    std::memcpy(at_, name.data(), name.size());
    at_ += name.size();
    const size_t size =
        std::min(static_cast<size_t>(at_ - size_at) - 2, kMaxKeyPathBytes);
    StoreLe<uint16_t>(size_at, static_cast<uint16_t>(size));
    at_ = size_at + 2 + size;
  }
  std::string_view view() const {
    return {begin_, static_cast<size_t>(at_ - begin_)};
  }

 private:
  void Has(size_t part) { *begin_ = static_cast<char>(*begin_ | 1 << part); }

  char* const begin_;
  char* at_;
};

}  // namespace tracefs
