// TargetTree: the directory that a plan is replayed in, and the one place that
// touches it. Every name is one component below a directory that was opened
// before; no link is followed, so nothing outside can be reached, whatever a
// plan says.
#pragma once

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/replay/action.h"
#include "tracefs/replay/plan_file.h"
#include "tracefs/replay/privilege.h"

namespace tracefs::replay {

enum class DataMode : uint8_t {
  kRecorded,  // else as kSynth
  kZero,
  kPattern,
  kSynth,  // same hash, same bytes; half of them compress away
};

struct TargetOptions {
  DataMode data = DataMode::kRecorded;
  // What was asked for. With kOwner, which takes root, operations are done as
  // who it was.
  Grants grants;
  // Files should keep their recorded owners; it is reported if they do not.
  bool owners_matter = false;
  bool direct = false;  // O_DIRECT where offset, length and file allow it
  // Calls that failed when they were recorded are taken to fail, and writes and
  // copies to be as long as they were, whatever would come of them here: for
  // who wants to come to the same end.
  bool only_what_was_done = false;
  // ACLs may name anybody, also without kOwner: nobody else gets at the files.
  bool all_acls = false;
  uint64_t max_bytes = UINT64_MAX;   // written; holes are none
  uint64_t max_inodes = UINT64_MAX;  // made
};

// What an action came to.
struct Done {
  int64_t result = 0;
  int error = 0;
  struct stat st;  // of look-ups and getattr
  bool has_stat = false;
  std::string text;   // of readlink
  uint32_t hash = 0;  // of the bytes read
  bool skipped = false;
  std::optional<Privilege> left_out;  // why it was skipped
};

// What a system call returned, and errno.
inline void Set(Done* done, ssize_t rc) {
  done->result = rc;
  done->error = rc < 0 ? errno : 0;
}

// For I/O that bypasses the page cache (O_DIRECT).
inline constexpr size_t kAlignment = 4096;

// What a thread that calls Do keeps to itself.
class WorkerState {
 public:
  std::byte* Room(size_t n);  // aligned for O_DIRECT
  ~WorkerState();
  WorkerState() = default;
  WorkerState(const WorkerState&) = delete;
  WorkerState& operator=(const WorkerState&) = delete;

 private:
  friend class TargetTree;
  std::byte* room_ = nullptr;
  size_t size_ = 0;
  uint32_t umask_ = UINT32_MAX;
  uint32_t uid_ = 0;
  uint32_t gid_ = 0;
  bool begun_ = false;
};

class TargetTree {
 public:
  // In the directory `folder`. `header` says how many slots there are.
  static std::unique_ptr<TargetTree> Open(UniqueFd folder,
                                          const PlanHeader& header,
                                          const TargetOptions& options);
  ~TargetTree();

  // Makes an entry of the initial tree, or, if not `make`, only opens what is a
  // directory. Errors name the entry. EEXIST is one.
  Status Place(const TreeEntry& entry, bool make);
  Status PlaceData(const InitialData& data);
  // CRC-32C of what the file of an initial entry holds now.
  Result<uint32_t> ChecksumOf(const TreeEntry& entry);
  // Puts sizes and times that later entries have changed.
  int root() const { return dir_fds_[kRootSlot].load(); }

  // The descriptor behind a slot; -1: there is none. For UndoRecorder.
  int DirFd(uint32_t slot) const;
  int HandleFd(uint32_t slot) const;

  // Does it. Threads: any, each with its own state; actions on the same slots
  // in the order of the plan, or they may fail.
  void Do(const Action& action, WorkerState& worker, Done* done);

  uint64_t bytes_written() const { return bytes_written_; }
  // What was not done because it was not asked for.
  PrivilegeCounts left_out() const { return left_out_.Counts(); }
  // Something would have been more than was allowed.
  bool over_quota() const { return over_quota_; }

 private:
  TargetTree(const PlanHeader& header, const TargetOptions& options);
  class Reached;

  bool LeavesOut(Privilege privilege);
  std::optional<Privilege> LeavesOutXattr(std::string_view name,
                                          ByteSpan value) const;
  mode_t AllowedMode(mode_t mode);
  void NoteOwner(uint32_t uid, uint32_t gid);
  class KeptCapability;
  bool PlaceXattrs(int fd, std::string_view xattrs, bool acls);
  Status MakeEntry(const TreeEntry& entry, int dir);
  void MakeInstead(const Action& action, Done* done);
  bool TakeBytes(uint64_t n);
  bool HasRoomFor(uint64_t n) const {
    const uint64_t used = bytes_written_.load(std::memory_order_relaxed);
    return n <= options_.max_bytes - std::min(used, options_.max_bytes);
  }
  bool DidNothing(const Action& action) const;
  uint64_t MostOf(const Action& action, uint64_t length) const;
  bool TakeInode();
  void Become(const Action& action, WorkerState& worker);
  void Look(const Action& action, Done* done);
  void Make(const Action& action, Done* done);
  void OpenFile(const Action& action, Done* done);
  void Remove(const Action& action, Done* done);
  void Rename(const Action& action, Done* done);
  void Link(const Action& action, Done* done);
  void Read(const Action& action, WorkerState& worker, Done* done);
  void Write(const Action& action, WorkerState& worker, Done* done);
  void Copy(const Action& action, WorkerState& worker, Done* done);
  static uint32_t HashOf(int fd, uint64_t begin, uint64_t count,
                         WorkerState& worker);
  void Close(const Action& action);
  void SetAttributes(const Action& action, Done* done);
  void Readdir(const Action& action, WorkerState& worker, Done* done);
  void Xattr(const Action& action, WorkerState& worker, Done* done);
  void SetLock(const Action& action, Done* done);
  void SyncOrSeek(const Action& action, Done* done);
  ByteSpan DataOf(const Action& action, WorkerState& worker) const;

  const TargetOptions options_;
  LeftOut left_out_;
  std::vector<std::atomic<int>> dir_fds_;
  std::vector<std::atomic<int>> handle_fds_;
  std::atomic<uint64_t> bytes_written_{0};
  std::atomic<uint64_t> inodes_made_{0};
  std::atomic<bool> over_quota_{false};
  std::mutex lock_mutex_;
  // Descriptors that hold the locks of an owner; by owner and file.
  std::unordered_map<uint64_t, UniqueFd> lock_fds_;  // guarded by lock_mutex_
};

}  // namespace tracefs::replay
