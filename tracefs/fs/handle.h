// What open, create and opendir leave with the kernel as fi->fh.
#pragma once

#include <fcntl.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/event/event.h"
#include "tracefs/fs/cache_policy.h"
#include "tracefs/fs/inode_table.h"
#include "tracefs/fs/io_opens.h"
#include "tracefs/fs/user_shares.h"
#include "tracefs/survive/area.h"

namespace tracefs {

// The last process that was seen using a handle. RELEASE and page-cache writes
// come without a caller; they are attributed to it and marked as inferred.
class LastCaller {
 public:
  struct Seen {
    uint32_t tid = 0;
    uint32_t uid = 0;
    uint32_t gid = 0;
    CallerInfo info;  // tid 0: was not resolved
  };
  // `also` is called while no other one is set.
  template <typename Also>
  void Set(const Seen& seen, Also also) {
    std::lock_guard lock(mu_);
    seen_ = seen;
    also();
  }
  void Set(const Seen& seen) {
    Set(seen, [] {});
  }
  Seen Get() const {
    std::lock_guard lock(mu_);
    return seen_;
  }

 private:
  mutable std::mutex mu_;
  Seen seen_;
};

class FileSystem;

struct Handle {
  virtual ~Handle();
  // `descriptor` may be none: the kernel reads a passthrough file by itself,
  // and other requests open it when they come. A given one has been taken from
  // `share` for user `uid`, who opens the file.
  Handle(uint64_t handle_id, UniqueFd descriptor, Inode& of, int open_flags,
         UserShares& share, uint32_t uid)
      : id(handle_id),
        inode(of),
        flags(open_flags),
        link_id(of.link_id()),
        share_(share),
        uid_(uid),
        fd_(descriptor.Release()) {}

  // What the kernel is told of it, and back: its address or, where a later
  // daemon must find it (HandleTable::KeepIn), the number of its record and 1.
  uint64_t ForKernel() const;
  static Handle* Of(uint64_t fh) {
    if (fh <= survive::Area::kMostOpens) [[unlikely]]
      return AtNumber(static_cast<uint32_t>(fh - 1));
    return reinterpret_cast<Handle*>(fh);
  }
  // In the place of its record, if there is an area.
  static void* operator new(size_t bytes);
  static void operator delete(void* handle);

  // Its record in the area, by its address alone; null if there is none.
  survive::OpenRecord* Record() const;

  // The open file; opened now if it was not yet. -1 and errno on failure.
  int Fd(FileSystem& fs) const {
    const int fd = fd_.load(std::memory_order_acquire);
    return fd >= 0 ? fd : OpenNow(fs);
  }
  // The same file without O_DIRECT, which refuses what is not aligned: for
  // pages that come back from the cache, and for calls after
  // fcntl(F_SETFL) has taken the flag away. -1 and errno on failure.
  int BufferedFd(FileSystem& fs) const;
  // For a call that carries `flags_now`.
  int FdFor(FileSystem& fs, int flags_now) const {
    return (flags & ~flags_now & O_DIRECT) == 0 ? Fd(fs) : BufferedFd(fs);
  }

  // Code that uses it beyond its RELEASE counts itself in beforehand; the last
  // user destroys it. It begins with one user, the kernel.
  void Enter() const { users_.fetch_add(1, std::memory_order_relaxed); }
  bool LeaveAsLast() const {
    return users_.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }

  // It has no descriptor that it was taken from a share for, but was taken from
  // this one for the same user, who gets it back in the end.
  void CountIn(UserShares& share) { counted_in_ = &share; }

  const uint64_t id;  // distinct for the life of the mount; ARG_FH
  Inode& inode;       // the kernel holds it until RELEASE is answered
  const int flags;
  // Each read, or write, waits for the disk.
  bool reads_from_disk() const { return (flags & O_DIRECT) != 0; }
  // `flags_now`: of that write.
  bool writes_to_disk(int flags_now) const {
    return (flags & O_DIRECT) != 0 || ((flags | flags_now) & O_DSYNC) != 0;
  }
  // The file could only be opened for appending (chattr +a): O_APPEND is set
  // on `fd` itself.
  bool append_only = false;
  // The name that it was opened by, of a file that may have several.
  uint32_t link_id = 0;
  // Chosen when it was opened; an open file keeps it, whichever tracers come.
  IoMode io_mode = IoMode::kCached;
  IoClaim io_claim;  // given back when it leaves the HandleTable
  LastCaller last_caller;
  // The same, where a later daemon finds it.
  void NoteCaller(const LastCaller::Seen& seen);

 private:
  friend class HandleTable;
  static Handle* AtNumber(uint32_t number);
  int OpenNow(FileSystem& fs) const;
  // Opens the file again with `our_flags` and leaves it in `kept`.
  int OpenInto(std::atomic<int>& kept, FileSystem& fs, int our_flags) const;

  UserShares& share_;
  UserShares* counted_in_ = nullptr;
  const uint32_t uid_;
  mutable std::atomic<int> fd_;
  mutable std::atomic<int> buffered_fd_{-1};  // of one with O_DIRECT
  mutable std::atomic<int> users_{1};
  Handle* previous_ = nullptr;
  Handle* next_ = nullptr;
};

// The handles that are open, so that those still open when the mount ends can
// be closed, and their release recorded: on unmount the kernel drops the
// RELEASE requests that were not yet sent. Threads: any.
class HandleTable {
 public:
  ~HandleTable();

  // From now on handles are made where a later table finds them. Before the
  // first one; `area` outlives all handles.
  static void KeepIn(survive::Area& area);
  // The handles that a dead daemon had, of inodes that are in `fs` again.
  // kSystem if what was left cannot be right.
  Status Restore(InodeTable& inodes, UserShares& shares,
                 UserShares& without_descriptor);
  // Closes what those requests opened, which were not answered. A file without
  // a name (O_TMPFILE) is left, as nobody could find it again: its request goes
  // on with it (LeftFile). It keeps one look-up of its inode.
  void CloseOf(const std::function<bool(uint64_t unique)>& unanswered,
               InodeTable& inodes);
  // Whether it is one that this daemon has left.
  bool LeavesOf(uint64_t unique) const;
  // From now on the look-up counts with the handle, not with the request.
  void NoteLeft();
  // Whoever is given it removes it. Null: there is none. Threads: any.
  Handle* TakeLeft(uint64_t unique);

  // Takes ownership until Remove.
  Handle* Add(std::unique_ptr<Handle> handle);
  std::unique_ptr<Handle> Remove(Handle& handle);
  // One of those left; null when there are none.
  Handle* Any();
  // A copy of a descriptor of this file that writes at given offsets, if one is
  // open.
  UniqueFd WriterOf(const Inode& inode);
  // Calls `visit` for each; it must not use this table.
  void ForEach(const std::function<void(const Handle&)>& visit);

 private:
  struct alignas(64) Shard {
    std::mutex mu;
    Handle* first = nullptr;  // guarded by mu
  };
  Shard& ShardOf(const Handle& handle) {
    return shards_[handle.id % shards_.size()];
  }
  static std::unique_ptr<Handle> Unlink(Shard& shard, Handle& handle);
  void Insert(Handle* handle);
  static void NoteOpen(const Handle& handle);
  static void NoteClosed(const Handle& handle);

  std::array<Shard, 16> shards_;
  std::atomic<size_t> left_count_{0};
  std::mutex left_mu_;
  std::unordered_map<uint64_t, Handle*>
      left_;  // by request; guarded by left_mu_
};

// A directory being read: one batch of getdents64 at a time.
struct DirHandle : Handle {
  using Handle::Handle;

  static constexpr size_t kBatchBytes = 64 * 1024;

  std::mutex mu;  // guards all below; requests on one handle may be parallel
  std::unique_ptr<char[]> batch;
  size_t batch_size = 0;
  size_t batch_at = 0;
  bool read_before = false;  // by getdents64
  // The offset (d_off) that the next entry of the batch follows.
  off_t position = 0;
};

}  // namespace tracefs
