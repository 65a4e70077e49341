// BlockRewriter: directories with keys of their own.
#include "anonymize/block_rewriter.h"

namespace tracefs::anonymize {

DirectoryKey BlockRewriter::KeyOf(uint32_t path_id) {
  // From the directory asked for up to one whose key is known, and back.
  std::vector<Path*> chain;
  for (uint32_t id = path_id; id != 0 && id <= paths_.size();) {
    Path& path = paths_[id - 1];
    if (path.has_key) break;
    chain.push_back(&path);
    id = path.parent;
  }
  for (auto path = chain.rbegin(); path != chain.rend(); ++path) {
    Path& p = **path;
    p.has_key = true;
    if (p.parent == 0) {
      p.key = tree_->root();
      continue;
    }
    p.key = tree_->Child(paths_[p.parent - 1].key, p.name);
    if (p.key == nullptr) p.key = tree_->Subtree(p.shown);
  }
  return path_id == 0 || path_id > paths_.size() ? nullptr
                                                 : paths_[path_id - 1].key;
}

void BlockRewriter::DefinePath(const Around& around, std::string_view before,
                               std::string_view after) {
  // As readers do: ids count from 1, parents come first, others are ignored.
  if (around.path_id != paths_.size() + 1) return;
  Path path;
  const bool reveal = plan_->options().reveal;
  path.parent = around.parent <= paths_.size() ? around.parent : 0;
  path.name = reveal ? after : before;
  if (reveal) {
    if (path.parent != 0) path.shown = paths_[path.parent - 1].shown;
    if (path.shown != "/") path.shown += '/';
    path.shown += before;
  }
  paths_.push_back(std::move(path));
}

}  // namespace tracefs::anonymize
