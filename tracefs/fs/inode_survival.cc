// InodeTable: what a later daemon needs of it, and how that one gets it
// (tracefs/survive/area.h).
//
// Names are not kept: the files themselves tell theirs. Of a file with several
// names only one is known again, until others are looked up.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>

#include "tracefs/base/gone_mark.h"
#include "tracefs/fs/inode_table.h"
#include "tracefs/fs/path_below.h"

namespace tracefs {

using survive::Area;
using survive::NodeRecord;

namespace {

uint8_t FlagsOf(const Inode& inode) {
  unsigned flags = 0;
  if (inode.may_have_several_names()) flags |= NodeRecord::kSeveralNames;
  if (inode.io_opens().may_be_stored_to()) flags |= NodeRecord::kStores;
  if (inode.expects_cached_stores()) flags |= NodeRecord::kCachedStores;
  return static_cast<uint8_t>(flags);
}

}  // namespace

void InodeTable::Record(Inode& inode) {
  const uint32_t number = area_->TakeNode();
  if (number == Area::kNone) return;
  NodeRecord& record = area_->node(number);
  record.device = inode.device_;
  record.inode = inode.number_;
  record.type = inode.type_;
  const CompactHandle& handle = inode.handle_;
  const bool fits = handle && handle.size() <= record.handle.size();
  record.handle_size = fits ? static_cast<uint8_t>(handle.size()) : 0;
  record.handle_type = handle.type();
  if (fits) std::copy_n(handle.bytes(), handle.size(), record.handle.begin());
  inode.record_ = number;
  NoteChange(inode);
  area_->Count(number, inode.id_, 1, inode.nlookup_);
  record.id.store(inode.id_, std::memory_order_release);
}

void InodeTable::NoteChange(const Inode& inode) {
  if (inode.record_ == Area::kNone) return;
  NodeRecord& record = area_->node(inode.record_);
  record.fd.store(inode.fd_.load(std::memory_order_relaxed));
  record.backing_id.store(inode.backing_id());
  record.flags.store(FlagsOf(inode));
}

void InodeTable::Unrecord(Inode& inode) {
  if (inode.record_ == Area::kNone) return;
  // Before its descriptor is closed: that number may then mean another file.
  area_->node(inode.record_).id.store(0);
  area_->GiveNode(inode.record_);
  inode.record_ = Area::kNone;
}

Inode* InodeTable::RestoreOne(uint32_t number) {
  NodeRecord& record = area_->node(number);
  BackingFile file;
  file.fd.Reset(record.fd.load());
  if (file.fd) fds_left_.fetch_sub(1, std::memory_order_relaxed);
  file.handle = CompactHandle::From(
      record.handle_type, record.handle.data(),
      std::min<size_t>(record.handle_size, record.handle.size()));
  struct stat st {};
  st.st_dev = record.device;
  st.st_ino = record.inode;
  st.st_mode = static_cast<mode_t>(record.type) << 12;
  auto* const inode = new Inode(record.id.load(), std::move(file), st);
  inode->record_ = number;
  inode->nlookup_ = record.count.load();
  inode->backing_id_.store(record.backing_id.load());
  const unsigned flags = record.flags.load();
  if ((flags & NodeRecord::kSeveralNames) != 0) inode->ExpectSeveralNames();
  if ((flags & NodeRecord::kStores) != 0) inode->io_opens_.ExpectStores();
  if ((flags & NodeRecord::kCachedStores) != 0) inode->ExpectCachedStores();
  if (!inode->pinned()) has_unpinned_.store(true, std::memory_order_relaxed);
  // Asked when it is opened: it may have the flag.
  inode->SetAppendOnly(true);
  InsertById(inode);
  const uint64_t hash = KeyHash(inode->device_, inode->number_);
  KeyShard& shard = KeyShardOf(hash);
  const std::lock_guard lock(shard.mu);
  Inode** at = &shard.buckets[(hash / kShards) & (shard.buckets.size() - 1)];
  while (*at != nullptr && ((*at)->number_ != inode->number_ ||
                            (*at)->device_ != inode->device_)) {
    at = &(*at)->next_by_key_;
  }
  if (Inode* const other = *at; other != nullptr) {
    // One of them has been superseded: a file of which a descriptor is held is
    // what its number means.
    if (other->pinned()) {
      inode->superseded_ = true;
    } else {
      other->superseded_ = true;
      UnlinkKey(shard, hash, other);
    }
  }
  if (!inode->superseded_) InsertByKey(shard, hash, inode);
  size_.fetch_add(1, std::memory_order_relaxed);
  return inode;
}

// Of a file with several names the one that its descriptor stands for may be
// gone; but a name may end like the mark.
std::string_view InodeTable::WithoutMark(std::string_view name, Inode& parent,
                                         const Inode& inode) {
  struct stat st;
  if (!name.ends_with(kGoneMark) ||
      (::fstatat(Open(parent).get(), std::string(name).c_str(), &st,
                 AT_SYMLINK_NOFOLLOW) == 0 &&
       st.st_ino == inode.number_ && st.st_dev == inode.device_)) {
    return name;
  }
  return name.substr(0, name.size() - kGoneMark.size());
}

void InodeTable::RestoreNames(const std::vector<Inode*>& inodes) {
  Inode* const root = Find(1);
  std::string top = PathBelow(root->fd_.load());
  if (top == "/") top.clear();
  std::unordered_map<std::string, Inode*> directories = {{top, root}};
  std::vector<std::pair<Inode*, std::string>> named;
  for (Inode* const inode : inodes) {
    const BackingFd fd = Open(*inode);
    std::string path = fd.get() < 0 ? std::string() : PathBelow(fd.get());
    if (!path.starts_with(top) || path.size() <= top.size()) continue;
    if (inode->is_dir()) directories.emplace(path, inode);
    named.emplace_back(inode, std::move(path));
  }
  for (const auto& [inode, path] : named) {
    const size_t slash = path.rfind('/');
    if (slash == std::string::npos) continue;
    const auto parent = directories.find(path.substr(0, slash));
    if (parent == directories.end() || parent->second == inode) continue;
    const std::string_view name = WithoutMark(
        std::string_view(path).substr(slash + 1), *parent->second, *inode);
    // So the kernel calls one that was made without a name (O_TMPFILE).
    if (name == "#" + std::to_string(inode->number_)) continue;
    Named(inode, parent->second, name);
  }
}

std::string InodeTable::DescribedPath(uint64_t id) const {
  constexpr int kDeepest = 64;
  std::string path;
  NodeLink link;
  for (int depth = 0; id > 1 && depth < kDeepest; ++depth) {
    if (!LinkOf(id, &link)) break;
    path.insert(0, "/" + std::string(link.name.view()));
    id = link.parent;
  }
  if (id == 1) return path.empty() ? "/" : path;
  return "(file " + std::to_string(id) + ")" + path;
}

void InodeTable::Restore() {
  std::vector<Inode*> inodes;
  uint64_t next = next_id_->load();
  const auto records =
      std::min<size_t>(area_->header().nodes_used.load(), Area::kMostNodes);
  for (uint32_t i = 0; i < records; ++i) {
    const uint64_t id = area_->node(i).id.load();
    if (id <= 1) continue;
    if (Find(id) != nullptr) {
      area_->node(i).id.store(0);  // no two have one number
      continue;
    }
    inodes.push_back(RestoreOne(i));
    next = std::max(next, id + 1);
  }
  next_id_->store(next);
  RestoreNames(inodes);
  // Those that only names in them had kept.
  for (Inode* const inode : inodes) AddRef(inode);
  for (Inode* const inode : inodes) DropRefs(inode, 1, 0);
}

}  // namespace tracefs
