// FileTree: the files that a foreign trace tells of, by the paths they have
// below one directory, with inode numbers of our own.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "tracefs/event/event.h"
#include "tracefs/replay/tree_model.h"

namespace tracefs::import {

using replay::kNoNode;
using replay::kRootNode;
using replay::NodeId;

// Of Node::known: the mode was told, or set.
inline constexpr uint8_t kModeKnown = 1;

// What a first pass has found out of a file that was there before.
struct FoundBefore {
  std::optional<uint32_t> mode;
  std::optional<uint64_t> size;
  uint64_t least_size = 0;  // that much was read
  uint32_t links = 0;       // 0: not known
  bool existed = false;     // although it was opened with O_CREAT
};

// By inode number, which are the same in each pass.
using Foundling = std::unordered_map<uint64_t, FoundBefore>;

// Where a path leads.
struct Spot {
  enum class State : uint8_t {
    kFound,
    kMissing,  // its directory is known, and it is not there
    kUnknown,  // its directory was never seen
    kOutside,  // not below the directory that is imported
    kRefused,  // no kernel would take it
  };
  State state = State::kUnknown;
  NodeId parent = kNoNode;
  std::string name;  // empty: the top directory itself
  NodeId node = kNoNode;
};

// Threads: one. Also says the names of files to what writes the trace.
class FileTree final : public EventResolver {
 public:
  static constexpr size_t kMostFiles = 8'000'000;

  // `top`: an absolute path. `special`: with what is below /dev, /proc and
  // /sys.
  explicit FileTree(std::string_view top, bool special = false);

  // `path` is absolute. Symbolic links whose targets are known are followed;
  // the last one if `follow`.
  Spot Find(std::string_view path, bool follow) const;
  // A new one, without a name.
  NodeId Make(uint32_t mode);

  void Link(NodeId parent, std::string_view name, NodeId node);
  // Takes the name away; the file is forgotten with its last name and handle.
  void Unlink(NodeId parent, std::string_view name);
  void Rename(NodeId parent, std::string_view name, NodeId new_parent,
              std::string_view new_name, bool exchange);
  void SetTarget(NodeId node, std::string_view target);
  void Opened(NodeId node) { ++tree_.node(node).open_count; }
  void Closed(NodeId node);

  replay::Node& node(NodeId id) { return tree_.node(id); }
  uint64_t InodeOf(NodeId id) const { return tree_.node(id).inode; }
  // Changes when a path that was valid does not lead to its file any more.
  uint64_t epoch() const { return epoch_; }
  bool full() const { return tree_.live_nodes() >= kMostFiles; }
  const std::string& top() const { return top_; }

  // For a path in the traced system its path below the top; nothing if it is
  // not there.
  std::optional<std::string> Below(std::string_view path) const;

  void ResolveCaller(Event& /*event*/) override {}
  void ResolveAttributes(Event& /*event*/) override {}
  bool LinkOf(uint64_t node, NodeLink* link) override;
  void ForEachName(uint64_t node, void* context,
                   void (*visit)(void*, std::string_view)) override;

 private:
  void Forget(NodeId id);

  const bool special_;
  std::string top_;  // without '/' at its end; empty for "/"
  replay::TreeModel tree_;
  std::unordered_map<uint64_t, std::string> targets_;  // by inode number
  uint64_t next_inode_ = 1;
  uint64_t epoch_ = 1;
};

// `path` without "//", "." and "..", as if there were no symbolic links.
std::string Normal(std::string_view path);

}  // namespace tracefs::import
