// The inodes of the backing tree that the kernel knows, and their names.
//
// An inode is found by its node id, a 64-bit counter that is never reused (or,
// with --handles yes, a number that leads back to the file, lasting_ids.h), or
// by its key (device, inode number) below. Its O_PATH descriptor pins the
// backing inode, so that a key cannot come to mean another file while the entry
// lives, even after unlink. The kernel's lookup count keeps an entry; so do
// entries whose name lies in it, so that paths stay known. Descriptors are
// limited: beyond the limit, an inode is held by its file handle, or, where
// those cannot be opened, by its names alone.
#pragma once

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "tracefs/base/unique_fd.h"
#include "tracefs/event/event.h"
#include "tracefs/fs/backing_files.h"
#include "tracefs/fs/compact_handle.h"
#include "tracefs/fs/compact_name.h"
#include "tracefs/fs/io_opens.h"
#include "tracefs/fs/lasting_ids.h"
#include "tracefs/fs/page_order.h"
#include "tracefs/fs/written_ranges.h"
#include "tracefs/survive/area.h"

namespace tracefs {

class NameMatcher;

// How an entry holds its backing file: by the descriptor if there is one, else
// by the handle if it can be opened, else by the names it is given.
struct BackingFile {
  UniqueFd fd;  // O_PATH
  CompactHandle handle;
};

// A descriptor of a backing file, for as long as this lives.
class BackingFd {
 public:
  explicit BackingFd(int borrowed) : fd_(borrowed) {}
  explicit BackingFd(UniqueFd owned)
      : owned_(std::move(owned)), fd_(owned_.get()) {}

  // -1 if the file could not be opened again; calls on it then fail with EBADF,
  // for which OpScope replies with the error of that open (LostFdError).
  int get() const { return fd_; }

 private:
  UniqueFd owned_;
  int fd_;
};

// The error of this thread's last failed open (ESTALE, EMFILE, …).
int& LostFdError();

class Inode {
 public:
  Inode(uint64_t id, BackingFile file, const struct stat& st)
      : id_(id),
        device_(st.st_dev),
        number_(st.st_ino),
        type_(static_cast<uint8_t>((st.st_mode & S_IFMT) >> 12)),
        fd_(file.fd.Release()),
        handle_(std::move(file.handle)) {}

  ~Inode() {
    delete page_order_.load(std::memory_order_relaxed);
    delete write_notes_.load(std::memory_order_relaxed);
  }
  Inode(const Inode&) = delete;
  Inode& operator=(const Inode&) = delete;

  uint64_t id() const { return id_; }
  dev_t device() const { return device_; }
  ino_t number() const { return number_; }
  // st_mode's file type as a d_type (DT_REG, DT_DIR, …); never changes.
  uint8_t type() const { return type_; }
  bool is_dir() const { return type_ == (S_IFDIR >> 12); }
  bool is_regular() const { return type_ == (S_IFREG >> 12); }
  // False if the backing inode may have been freed and its number reused.
  bool pinned() const {
    return fd_.load(std::memory_order_acquire) >= 0 || backing_id() > 0;
  }
  const CompactHandle& handle() const { return handle_; }
  // Changes with the names.
  uint32_t name_version() const {
    return name_version_.load(std::memory_order_relaxed);
  }
  // The file's number with the kernel (backing_files.h): 0 = it has none yet,
  // -1 = it cannot have one. Once set it stays until the inode is forgotten:
  // opens with and without one do not mix (linux/fs/fuse/iomode.c).
  int32_t backing_id() const {
    return backing_id_.load(std::memory_order_acquire);
  }
  // Sets it if it is still 0; returns what it is then.
  int32_t SetBackingId(int32_t id) {
    int32_t expected = 0;
    return backing_id_.compare_exchange_strong(expected, id) ? id : expected;
  }
  // How the kernel has it open.
  IoOpens& io_opens() { return io_opens_; }
  const IoOpens& io_opens() const { return io_opens_; }
  // Some open can be mapped for writing through the kernel's page cache, while
  // others bypass it. Permanent.
  void ExpectCachedStores() { cached_stores_ = true; }
  bool expects_cached_stores() const { return cached_stores_; }
  // It was seen to be append-only (chattr +a), and may still be.
  void SetAppendOnly(bool is) {
    append_only_.store(is, std::memory_order_relaxed);
  }
  bool append_only() const {
    return append_only_.load(std::memory_order_relaxed);
  }
  // The order in which pages came; null before the first page was read.
  PageOrder* page_order() const {
    return page_order_.load(std::memory_order_acquire);
  }
  PageOrder& MakePageOrder();
  // What was written and has not been asked for since (extents.h); null before
  // the first write that is noted.
  WriteNotes* write_notes() const {
    return write_notes_.load(std::memory_order_acquire);
  }
  WriteNotes& MakeWriteNotes();
  // Something was written that nobody has noted.
  void SetUnknownWrites(bool is) {
    unknown_writes_.store(is, std::memory_order_relaxed);
  }
  bool has_unknown_writes() const {
    return unknown_writes_.load(std::memory_order_relaxed);
  }
  // For a directory: whether the last name looked up in it led to a file that
  // was not known before, as the next one then may.
  void NoteLookup(bool found_new) {
    if (finds_new_.load(std::memory_order_relaxed) != found_new) {
      finds_new_.store(found_new, std::memory_order_relaxed);
    }
  }
  bool finds_new() const { return finds_new_.load(std::memory_order_relaxed); }
  // For a directory: how many names in it were taken away, or given to another,
  // and noted since. Whoever looked one up before that may have an old one.
  uint32_t names_gone() const {
    return names_gone_.load(std::memory_order_acquire);
  }
  void NoteNameGone() { names_gone_.fetch_add(1, std::memory_order_acq_rel); }
  // Which of its names is the current one: a number that a name keeps as long
  // as the file has it, renamed or not.
  uint32_t link_id() const { return link_id_.load(std::memory_order_relaxed); }
  // Once true it stays true: names may come and go below, unnoticed.
  bool may_have_several_names() const {
    return may_have_several_names_.load(std::memory_order_relaxed);
  }
  void ExpectSeveralNames() {
    if (!may_have_several_names()) {
      may_have_several_names_.store(true, std::memory_order_relaxed);
    }
  }
  // One of our own trace files: data read from it is not recorded.
  bool is_output() const { return is_output_; }

 private:
  friend class InodeTable;
  struct Link {
    Inode* parent = nullptr;  // counted in its refs_
    CompactName name;
    uint32_t id = 0;
  };

  const uint64_t id_;
  const dev_t device_;
  const ino_t number_;
  const uint8_t type_;
  bool is_output_ = false;  // set before the inode is published
  std::atomic<int> fd_;     // O_PATH; -1: opened again when needed
  CompactHandle handle_;    // none if fd_ was there from the beginning

  // Guarded by the shard of the key.
  uint32_t refs_ = 0;     // links of other inodes that lie in this directory
  uint64_t nlookup_ = 0;  // lookups that the kernel will return with FORGET
  uint32_t record_ = survive::Area::kNone;  // of the area, if there is one
  bool superseded_ = false;                 // no longer in the table of keys
  Inode* next_by_key_ = nullptr;
  // Guarded by the shard of the id.
  Inode* next_by_id_ = nullptr;

  // Guarded by the name stripe of the id: the last link is the current name.
  Link link_;
  std::unique_ptr<std::vector<Link>> more_links_;  // further hard links
  uint32_t links_made_ = 0;
  uint64_t name_bits_ = 0;
  uint32_t name_bits_generation_ = 0;  // 0: to be worked out again

  std::atomic<uint32_t> name_version_{0};
  std::atomic<uint32_t> link_id_{0};  // of link_
  std::atomic<uint32_t> names_gone_{0};
  std::atomic<int32_t> backing_id_{0};
  IoOpens io_opens_;
  std::atomic<bool> cached_stores_{false};
  std::atomic<bool> append_only_{false};
  std::atomic<bool> finds_new_{false};
  std::atomic<bool> may_have_several_names_{false};
  std::atomic<bool> unknown_writes_{false};
  std::atomic<PageOrder*> page_order_{nullptr};    // owned
  std::atomic<WriteNotes*> write_notes_{nullptr};  // owned
};

// Threads: any. Lock order: shard of an id, then name stripe; the shard of a
// key is never held together with another lock. No lock is held across a reply
// or, but for Stat, across a system call.
class InodeTable {
 public:
  // `backing`: where numbers of forgotten inodes are given back. `max_fds`:
  // O_PATH descriptors that may be held.
  explicit InodeTable(const BackingFiles& backing, int max_fds = 1 << 30)
      : backing_(backing),
        fds_beyond_(FdsBeyond(max_fds)),
        fds_left_(max_fds) {}
  ~InodeTable();
  InodeTable(const InodeTable&) = delete;
  InodeTable& operator=(const InodeTable&) = delete;

  // Outputs of our own tracers, to be marked when encountered. At most 64 at a
  // time are remembered; then the oldest is forgotten. One thread at a time may
  // change them.
  void AddOutput(dev_t device, ino_t inode);
  // No tracer writes it any more; from now on it is a file like any other.
  void RemoveOutput(dev_t device, ino_t inode);

  // The root of the mount, with id 1 (FUSE_ROOT_ID). Once, before the rest.
  Inode* InsertRoot(UniqueFd fd, const struct stat& st);

  // The inode of that id; the kernel must hold it.
  Inode* Find(uint64_t id) const;

  // The inode of that key, with one more lookup counted; null if not known.
  Inode* Acquire(dev_t device, ino_t number);
  // One more lookup of an inode that the kernel holds.
  void CountLookup(Inode& inode);
  // As Acquire, entering `file` (the one `st` describes) if not known.
  Inode* AcquireOrInsert(BackingFile file, const struct stat& st);
  // The key came to mean another file: the entry can be had by its id only, and
  // the lookup that Acquire counted is given back.
  void Supersede(Inode* inode);

  // How to hold a file that is about to be entered: takes `fd` (O_PATH) as it
  // is while there is room for descriptors, or if nothing else could lead back
  // to the file: it is not `named`, and handles cannot be opened.
  BackingFile Hold(UniqueFd fd, bool named);
  // A descriptor of the file behind `inode`, which the kernel holds.
  BackingFd Open(Inode& inode);
  // The same file opened again with `flags` as of open(2), by its handle if
  // that is all there is: no descriptor is made for that alone. None and errno
  // on failure; none and ENOTSUP if it is to be opened by Open()'s descriptor.
  UniqueFd OpenByHandle(const Inode& inode, int flags) const;
  // The file is about to lose a name, maybe its last one: makes sure that its
  // users can still open it. Not if MayPin says no: then only those who already
  // have it open can use it.
  void Pin(Inode& inode);
  // Descriptors beyond the budget, a quarter of it, are left for that. An
  // unlinked file returns its descriptor when the kernel forgets it, which may
  // be later.
  static constexpr int FdsBeyond(int max_fds) {
    return std::max(32, max_fds / 4);
  }
  bool MayPin() const { return fds_left() > -fds_beyond_; }
  // What is left of the budget; below 0: beyond it.
  int fds_left() const { return fds_left_.load(std::memory_order_relaxed); }
  // True once some inode was held without a descriptor.
  bool has_unpinned() const {
    return has_unpinned_.load(std::memory_order_relaxed);
  }
  // Where handles are opened: an open file of the backing mount. Once, before
  // the first request; without, names take the place of handles.
  void SetMount(UniqueFd mount) { mount_ = std::move(mount); }
  bool OpensHandles() const { return static_cast<bool>(mount_); }
  // From now on, inodes get ids that last, where they can. `ids` outlives this.
  // After the root.
  void SetLastingIds(LastingIds* ids) { lasting_ids_ = ids; }
  // A descriptor of the file with that lasting id (O_PATH), or of one that is
  // known by that id; none and errno on failure.
  UniqueFd OpenById(uint64_t id);
  // Keeps an inode, which the kernel holds, even when the kernel forgets it;
  // and stops keeping it. It may be gone afterwards.
  void Retain(Inode& inode) { AddRef(&inode); }
  void Unretain(Inode& inode) { DropRefs(&inode, 1, 0); }
  // Gives back `count` lookups. The inode may be gone afterwards.
  void Release(Inode* inode, uint64_t count);

  // --- Succession (tracefs/survive). `area` outlives this.
  // From now on it has what a later table needs. Before the first inode but the
  // root.
  void KeepIn(survive::Area& area) {
    area_ = &area;
    next_id_ = &area.header().next_node;
  }
  // What of the inode may change without this table has changed.
  void NoteChange(const Inode& inode);
  // Enters what the table of a dead daemon had. Names are those that the files
  // have now.
  void Restore();

  // --- Names.
  // `inode` was seen as `name` in `parent`; it becomes its current name. For
  // files other names stay known (hard links); a directory has just one.
  // It was looked up when names_gone() of `parent` was `seen_at`: false, and
  // nothing is noted, if it may have lost that name since.
  bool Named(Inode* inode, Inode* parent, std::string_view name,
             std::optional<uint32_t> seen_at = std::nullopt);
  // It also has that name; its current name stays current.
  void AlsoNamed(Inode* inode, Inode* parent, std::string_view name);
  // It no longer has that name. The last one is kept, for the path of a file
  // that is open though unlinked.
  void Unnamed(Inode* inode, Inode* parent, std::string_view name);
  // It moved from one name to another.
  void Renamed(Inode* inode, Inode* old_parent, std::string_view old_name,
               Inode* parent, std::string_view name);
  // A directory was renamed: paths below it changed.
  void DirectoryRenamed() {
    rename_epoch_.fetch_add(1, std::memory_order_relaxed);
  }
  uint64_t rename_epoch() const {
    return rename_epoch_.load(std::memory_order_relaxed);
  }
  // True once any inode has had two names at a time.
  bool has_hard_links() const {
    return has_hard_links_.load(std::memory_order_relaxed);
  }

  // Attributes of an inode that the kernel may have forgotten meanwhile.
  bool Stat(uint64_t id, struct stat* st);
  // A separate descriptor (O_PATH) of such an inode; none if that takes more
  // than a moment.
  UniqueFd Descriptor(uint64_t id);

  bool LinkOf(uint64_t id, NodeLink* link) const;
  // The name of that number; false if the file has it no longer.
  bool LinkOf(const Inode& inode, uint32_t link_id, NodeLink* link) const;
  void ForEachName(uint64_t id, void* context,
                   void (*visit)(void*, std::string_view)) const;
  // The name predicates that any name of `inode` satisfies, as of a generation
  // of theirs; kept with the inode until its names or the predicates change
  // (paper, section 3, "file-name cache").
  uint64_t NameBits(Inode& inode, const NameMatcher& names,
                    uint32_t generation);

  // Where it is below the root, for messages, as far as that is known.
  std::string DescribedPath(uint64_t id) const;

  size_t size() const { return size_.load(std::memory_order_relaxed); }

 private:
  // A hash table of inodes chained through one of their members.
  template <Inode* Inode::*kNext>
  struct Shard {
    mutable std::mutex mu;
    std::vector<Inode*> buckets = std::vector<Inode*>(16);
    size_t size = 0;
  };
  static constexpr size_t kShards = 64;
  using KeyShard = Shard<&Inode::next_by_key_>;
  using IdShard = Shard<&Inode::next_by_id_>;

  static uint64_t KeyHash(dev_t device, ino_t number);
  KeyShard& KeyShardOf(uint64_t hash) { return by_key_[hash % kShards]; }
  const IdShard& IdShardOf(uint64_t id) const { return by_id_[id % kShards]; }
  IdShard& IdShardOf(uint64_t id) { return by_id_[id % kShards]; }
  std::mutex& Stripe(uint64_t id) const { return stripes_[id % kShards]; }

  Inode* FindLocked(const IdShard& shard, uint64_t id) const;
  Inode* Insert(BackingFile file, const struct stat& st);
  uint64_t NewId(const BackingFile& file, const struct stat& st);
  bool AddName(Inode* inode, Inode* parent, std::string_view name, bool current,
               std::optional<uint32_t> seen_at);
  Inode* PutName(Inode& inode, Inode* parent, std::string_view name,
                 bool current);
  static void MakeCurrent(Inode& inode, uint32_t link_id);
  static void NoteCurrentLink(Inode& inode);
  static bool Tell(const Inode::Link& of, NodeLink* link);
  void AddRef(Inode* inode);
  void DropRefs(Inode* inode, uint32_t refs, uint64_t nlookup);
  static void UnlinkKey(KeyShard& shard, uint64_t hash, Inode* inode);
  bool TakeFd();
  UniqueFd OpenAgain(const Inode& inode) const;
  UniqueFd OpenByName(uint64_t id) const;
  UniqueFd TryOpenByName(uint64_t id) const;
  bool IsHandleOf(uint64_t id, const UniqueFd& file) const;
  int Keep(Inode& inode, UniqueFd fd);
  void Destroy(Inode* inode);
  void InsertById(Inode* inode);
  // With the shard's lock held.
  static void InsertByKey(KeyShard& shard, uint64_t hash, Inode* inode);
  // With the shard of the key held.
  void Record(Inode& inode);
  void Recount(const Inode& inode, int64_t delta) {
    if (inode.record_ == survive::Area::kNone) return;
    area_->Count(inode.record_, inode.id_, delta, inode.nlookup_);
  }
  void Unrecord(Inode& inode);
  Inode* RestoreOne(uint32_t record);
  void RestoreNames(const std::vector<Inode*>& inodes);
  std::string_view WithoutMark(std::string_view name, Inode& parent,
                               const Inode& inode);

  const BackingFiles& backing_;
  UniqueFd mount_;
  const int fds_beyond_;
  std::atomic<int> fds_left_;
  std::array<KeyShard, kShards> by_key_;
  std::array<IdShard, kShards> by_id_;
  mutable std::array<std::mutex, kShards> stripes_;
  survive::Area* area_ = nullptr;  // null: nothing survives
  std::atomic<uint64_t> own_next_id_{2};
  std::atomic<uint64_t>* next_id_ = &own_next_id_;
  LastingIds* lasting_ids_ = nullptr;  // null: ids only count
  // Held while an inode is entered that may get a lasting id: two of one id
  // must not be there, not even for a moment.
  std::mutex lasting_mu_;
  std::atomic<uint64_t> rename_epoch_{1};
  std::atomic<size_t> size_{0};
  std::atomic<bool> has_hard_links_{false};
  std::atomic<bool> has_unpinned_{false};
  struct OutputKey {
    std::atomic<uint64_t> device{0};
    std::atomic<uint64_t> inode{0};  // 0: unused
  };
  bool IsOutput(dev_t device, ino_t inode) const;
  std::array<OutputKey, 64> outputs_;
  std::atomic<size_t> outputs_added_{0};
};

}  // namespace tracefs
