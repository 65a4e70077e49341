// InodeTable: the names of inodes.
#include <algorithm>

#include "tracefs/event/name_matcher.h"
#include "tracefs/fs/inode_table.h"

namespace tracefs {

bool InodeTable::Named(Inode* inode, Inode* parent, std::string_view name,
                       std::optional<uint32_t> seen_at) {
  return AddName(inode, parent, name, /*current=*/true, seen_at);
}

void InodeTable::AlsoNamed(Inode* inode, Inode* parent, std::string_view name) {
  AddName(inode, parent, name, /*current=*/false, std::nullopt);
}

bool InodeTable::AddName(Inode* inode, Inode* parent, std::string_view name,
                         bool current, std::optional<uint32_t> seen_at) {
  std::mutex& stripe = Stripe(inode->id_);
  {
    std::lock_guard lock(stripe);
    if (inode->link_.parent == parent && inode->link_.name.view() == name) {
      return true;
    }
  }
  AddRef(parent);
  Inode* dropped = parent;
  bool still_has_it = true;
  {
    std::lock_guard lock(stripe);
    // Those who take names away note that before they come here.
    still_has_it = !seen_at || parent->names_gone() == *seen_at;
    if (still_has_it) dropped = PutName(*inode, parent, name, current);
  }
  if (dropped != nullptr) DropRefs(dropped, 1, 0);
  return still_has_it;
}

// With the stripe of its names held. The directory of a name that it no longer
// has; null if there is none.
Inode* InodeTable::PutName(Inode& inode, Inode* parent, std::string_view name,
                           bool current) {
  const uint32_t before = inode.link_.id;
  Inode::Link link{parent, CompactName(name), 0};
  std::swap(inode.link_, link);
  inode.name_bits_generation_ = 0;
  Inode* dropped = nullptr;
  if (link.parent == nullptr) {
    inode.link_.id = ++inode.links_made_;
  } else if (inode.is_dir()) {
    dropped = link.parent;
    inode.link_.id = link.id;
  } else {
    // The new current name may have been among the others.
    if (!inode.more_links_) {
      inode.more_links_ = std::make_unique<std::vector<Inode::Link>>();
    }
    std::vector<Inode::Link>& more = *inode.more_links_;
    const auto same =
        std::find_if(more.begin(), more.end(), [&](const Inode::Link& l) {
          return l.parent == parent && l.name.view() == name;
        });
    // Names that vanish below unnoticed must not accumulate.
    constexpr size_t kMaxNames = 64;
    inode.link_.id = same != more.end() ? same->id : ++inode.links_made_;
    if (same != more.end()) {
      dropped = same->parent;
      *same = std::move(link);
    } else if (more.size() >= kMaxNames) {
      dropped = more.front().parent;
      more.front() = std::move(link);
    } else {
      more.push_back(std::move(link));
      has_hard_links_.store(true, std::memory_order_relaxed);
    }
    inode.ExpectSeveralNames();
    if (!current) MakeCurrent(inode, before);
  }
  NoteCurrentLink(inode);
  return dropped;
}

// With the stripe of its names held.
void InodeTable::NoteCurrentLink(Inode& inode) {
  inode.link_id_.store(inode.link_.id, std::memory_order_relaxed);
  inode.name_version_.fetch_add(1, std::memory_order_relaxed);
}

// With the stripe of its names held.
void InodeTable::MakeCurrent(Inode& inode, uint32_t link_id) {
  for (Inode::Link& link : *inode.more_links_) {
    if (link.id == link_id) return std::swap(link, inode.link_);
  }
}

void InodeTable::Renamed(Inode* inode, Inode* old_parent,
                         std::string_view old_name, Inode* parent,
                         std::string_view name) {
  AddRef(parent);
  {
    std::unique_lock lock(Stripe(inode->id_));
    Inode::Link& link = inode->link_;
    if (link.parent == old_parent && link.name.view() == old_name) {
      link = Inode::Link{parent, CompactName(name), link.id};
      inode->name_bits_generation_ = 0;
      inode->name_version_.fetch_add(1, std::memory_order_relaxed);
      lock.unlock();
      DropRefs(old_parent, 1, 0);
      return;
    }
  }
  DropRefs(parent, 1, 0);
  // It was last seen under another of its names.
  Named(inode, parent, name);
  Unnamed(inode, old_parent, old_name);
}

void InodeTable::Unnamed(Inode* inode, Inode* parent, std::string_view name) {
  Inode* dropped = nullptr;
  {
    std::lock_guard lock(Stripe(inode->id_));
    if (!inode->more_links_ || inode->more_links_->empty()) return;
    std::vector<Inode::Link>& more = *inode->more_links_;
    if (inode->link_.parent == parent && inode->link_.name.view() == name) {
      dropped = inode->link_.parent;
      inode->link_ = std::move(more.back());
      more.pop_back();
      NoteCurrentLink(*inode);
    } else {
      const auto it =
          std::find_if(more.begin(), more.end(), [&](const Inode::Link& l) {
            return l.parent == parent && l.name.view() == name;
          });
      if (it == more.end()) return;
      dropped = it->parent;
      *it = std::move(more.back());
      more.pop_back();
    }
    inode->name_bits_generation_ = 0;
  }
  if (dropped != nullptr) DropRefs(dropped, 1, 0);
}

bool InodeTable::LinkOf(uint64_t id, NodeLink* link) const {
  const IdShard& shard = IdShardOf(id);
  std::lock_guard lock(shard.mu);
  const Inode* inode = FindLocked(shard, id);
  if (inode == nullptr) return false;
  std::lock_guard names(Stripe(id));
  // Without a name only the root is known.
  return Tell(inode->link_, link) || id == 1;
}

bool InodeTable::LinkOf(const Inode& inode, uint32_t link_id,
                        NodeLink* link) const {
  std::lock_guard names(Stripe(inode.id_));
  if (inode.link_.id == link_id) return Tell(inode.link_, link);
  if (!inode.more_links_) return false;
  for (const Inode::Link& one : *inode.more_links_) {
    if (one.id == link_id) return Tell(one, link);
  }
  return false;
}

bool InodeTable::Tell(const Inode::Link& of, NodeLink* link) {
  const Inode* parent = of.parent;
  link->parent = parent == nullptr ? 0 : parent->id_;
  link->parent_version = parent == nullptr ? 0 : parent->name_version();
  link->name.Set(of.name.view());
  return parent != nullptr;
}

void InodeTable::ForEachName(uint64_t id, void* context,
                             void (*visit)(void*, std::string_view)) const {
  const IdShard& shard = IdShardOf(id);
  std::lock_guard lock(shard.mu);
  const Inode* inode = FindLocked(shard, id);
  if (inode == nullptr) return;
  std::lock_guard names(Stripe(id));
  if (inode->link_.parent != nullptr) visit(context, inode->link_.name.view());
  if (!inode->more_links_) return;
  for (const Inode::Link& link : *inode->more_links_) {
    visit(context, link.name.view());
  }
}

uint64_t InodeTable::NameBits(Inode& inode, const NameMatcher& names,
                              uint32_t generation) {
  std::lock_guard lock(Stripe(inode.id_));
  if (inode.name_bits_generation_ == generation) return inode.name_bits_;
  uint64_t bits = 0;
  if (inode.link_.parent != nullptr) {
    bits |= names.Match(inode.link_.name.view());
  }
  if (inode.more_links_) {
    for (const Inode::Link& link : *inode.more_links_) {
      bits |= names.Match(link.name.view());
    }
  }
  inode.name_bits_ = bits;
  inode.name_bits_generation_ = generation;
  return bits;
}

}  // namespace tracefs
