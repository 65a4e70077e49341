#include "tracefs/fs/open_before.h"

namespace tracefs {

OpenBefore FindOpenBefore(FileSystem& fs, size_t max_examples) {
  OpenBefore found;
  struct Node {
    uint64_t id;
    IoMode mode;
    IoMode now;
  };
  std::vector<Node> nodes;
  fs.handles().ForEach([&](const Handle& handle) {
    if (!handle.inode.is_regular()) return;
    ++found.open;
    const IoMode now = fs.IoModeNow(handle.inode);
    if (handle.io_mode == now) return;
    ++found.different;
    if (nodes.size() < max_examples) {
      nodes.push_back({handle.inode.id(), handle.io_mode, now});
    }
  });
  // Paths are built once no handle is held up by that.
  PathBuffer buffer;
  for (const Node& node : nodes) {
    found.examples.push_back(
        {std::string(PathOf(fs, node.id, {}, buffer)), node.mode, node.now});
  }
  return found;
}

}  // namespace tracefs
