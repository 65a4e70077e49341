// FileSystem: passes every operation through to a backing directory and reports
// it to the event sink.
//
// The operations themselves are free functions named after libfuse's, one .cc
// per family (lookup, attr, create, remove, open, io, dir, xattr, lock, misc);
// this is the state they share. Threads: any number of libfuse workers.
#pragma once

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "tracefs/base/status.h"
#include "tracefs/base/tsan.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/event/file_states.h"
#include "tracefs/event/name_matcher.h"
#include "tracefs/fs/backing_files.h"
#include "tracefs/fs/cache_policy.h"
#include "tracefs/fs/change_order.h"
#include "tracefs/fs/closer.h"
#include "tracefs/fs/credentials.h"
#include "tracefs/fs/fuse_api.h"
#include "tracefs/fs/handed_request.h"
#include "tracefs/fs/handle.h"
#include "tracefs/fs/hold_lot.h"
#include "tracefs/fs/inode_table.h"
#include "tracefs/fs/lock_table.h"
#include "tracefs/fs/side_pool.h"
#include "tracefs/fs/user_shares.h"
#include "tracefs/fs/wait_rule.h"
#include "tracefs/pipeline/event_sink.h"
#include "tracefs/process/process_table.h"
#include "tracefs/process/system_calls.h"
#include "tracefs/survive/area.h"

namespace tracefs {

// Whether a file of this mode is set-user-id or set-group-id.
inline bool IsSetId(mode_t mode) { return (mode & (S_ISUID | S_ISGID)) != 0; }

inline bool HasSeveralNames(const struct stat& st) {
  return st.st_nlink > 1 && !S_ISDIR(st.st_mode);
}

// What is known about a file that is about to be opened for the kernel; the
// rest is looked up where it matters.
struct OpenFacts {
  int fd = -1;  // the file, if it is open already
  std::optional<bool> append_only;
  std::optional<bool> set_id;
};

// Files with a descriptor and files without, which a later daemon can find
// again: half of the places each, less those that are being given back.
constexpr int kMostSurvivingOpens =
    static_cast<int>(survive::Area::kMostOpens / 2) - 1024;

struct FileSystemOptions {
  Visibility visibility = Visibility::kAuto;
  // Lock requests come to us: some tracer records them. Else the kernel
  // handles them alone.
  bool forward_locks = false;
  // /proc/self/fd, opened before anything could replace it.
  int proc_self_fd = -1;
  // Makes the calling thread, a worker, one of that policy (SetWorkerPolicy).
  void (*set_up_worker)(int policy) = nullptr;
  // O_PATH descriptors to hold; further files are held by handles.
  int max_inode_fds = 1 << 30;
  // Descriptors of open files to hold, and how many of them are for root alone:
  // a user who has his share (user_shares.h) gets EMFILE.
  int max_open_files = 1 << 30;
  int open_files_for_root = 0;
  // Hold files by their handles where those can be opened; else by names.
  bool file_handles = true;
  // Handles of the mount's files can be opened, also when the kernel has
  // forgotten them and in later mounts (lasting_ids.h); and whether the source
  // is the root of its file system.
  bool lasting_handles = false;
  bool whole_file_system = false;
  // Bytes of a read request at most, as the kernel was told when it mounted;
  // 0: it was told nothing.
  uint32_t max_read = 0;
  // Let the kernel read and write by itself what is not recorded (needs root).
  bool passthrough = true;
  // Requests that may wait for the store at a time, and for such a wait, these
  // with how much data (side_pool.h).
  int max_waiting = 192;
  int max_aside = 0;
  size_t waiting_bytes = size_t{128} << 20;
};

struct Keeping;  // keep_before.h

// 64-bit fh -> handle.
inline Handle& HandleAt(uint64_t fh) {
  Handle& handle = *Handle::Of(fh);
  if (HandedRequest* handed = HandedRequest::Current()) [[unlikely]] {
    handed->Pin(handle);
  }
  return handle;
}

class FileSystem final : public EventResolver,
                         public FileStates,
                         public Interruptible {
 public:
  // `root`: O_PATH of the backing directory. `sink`, `names` and `processes`
  // outlive this.
  static Result<std::unique_ptr<FileSystem>> Create(FileSystemOptions options,
                                                    UniqueFd root,
                                                    EventSink& sink,
                                                    const NameMatcher& names,
                                                    ProcessTable& processes);

  // The table libfuse calls; userdata is the FileSystem.
  static const fuse_lowlevel_ops& Operations();
  static FileSystem& Of(fuse_req_t req) {
    if (const HandedRequest* handed = HandedRequest::Current()) [[unlikely]] {
      return handed->fs();
    }
    return *static_cast<FileSystem*>(fuse_req_userdata(req));
  }

  const FileSystemOptions& options() const { return options_; }
  EventSink& sink() { return sink_; }
  const NameMatcher& names() const { return names_; }
  InodeTable& inodes() { return inodes_; }
  const InodeTable& inodes() const { return inodes_; }
  HandleTable& handles() { return handles_; }
  LockTable& locks() { return locks_; }
  // Which operation came before which, where a trace must show it.
  ChangeOrder& change_order() { return change_order_; }
  // Where requests continue that may have to wait for another process.
  SidePool& side_pool() { return side_pool_; }
  const SidePool& side_pool() const { return side_pool_; }
  // Whose changes are held.
  HoldLot& holds() { return holds_; }
  // Null: this request's caller is not held.
  std::shared_ptr<HoldLot::Hold> HoldOf(fuse_req_t req, Op op,
                                        HoldLot::Waiter* who);
  // Any call below may wait for a server, forever.
  bool may_hang_below() const { return may_hang_below_; }
  // Which operations are handed over, by how long they wait.
  WaitRules& waits() { return waits_; }
  const WaitRules& waits() const { return waits_; }
  // Whether a request is to be handed over if it would have to wait.
  bool MayNotWait(fuse_req_t req, Op op, bool to_disk = false) const {
    return waits_.Of(op, to_disk).hands_over() && MayHandOver(req);
  }
  // Whether a request that this thread serves can go on on another.
  bool MayHandOver(fuse_req_t req) const;
  // The kernel says that the caller of a request has a signal to handle.
  bool Interrupt(uint64_t unique) override {
    side_pool_.Interrupt(unique);
    // libfuse interrupts callers that wait for a lock.
    return !options_.forward_locks;
  }
  // Its RELEASE has come: destroys it when it is no longer in use.
  void Dismiss(std::unique_ptr<Handle> handle) {
    if (handle->LeaveAsLast()) {
      CloseAside(std::move(handle));
    } else {
      static_cast<void>(handle.release());
    }
  }
  // Closes it where closing may take its time.
  void CloseAside(std::unique_ptr<Handle> handle) {
    if (may_hang_below_ && side_pool_.started()) {
      closer_.Close(side_pool_, std::move(handle));
    }
  }
  // Descriptors of open files, by who opened them.
  UserShares& open_files() { return open_files_; }
  const UserShares& open_files() const { return open_files_; }
  // Of those without a descriptor, where a later daemon must find them: there
  // are places for so many.
  UserShares& opens_without_descriptor() { return opens_without_descriptor_; }
  Inode& InodeOf(fuse_ino_t id) {
    Inode& inode = *inodes_.Find(id);
    if (HandedRequest* handed = HandedRequest::Current()) [[unlikely]] {
      handed->Pin(inode);
    }
    return inode;
  }
  // The file of an open handle is known without a search.
  Inode& InodeOf(fuse_ino_t id, const fuse_file_info* fi) {
    return fi != nullptr && fi->fh != 0 ? HandleAt(fi->fh).inode : InodeOf(id);
  }

  const CachePolicy& policy() const { return policy_; }

  // That of the handle which this thread's request opens: a dead daemon may
  // have recorded it.
  uint64_t NextHandleId() {
    survive::WorkSlot* const slot = survive::Area::OfThread();
    const uint64_t known = slot == nullptr ? 0 : slot->now.handle.load();
    if (known != 0) return known;
    const uint64_t id =
        next_handle_id_->fetch_add(1, std::memory_order_relaxed);
    if (slot != nullptr) slot->now.handle.store(id);
    return id;
  }

  // --- Succession (survival.cc).
  // From now on `area`, which outlives this, has what a later daemon needs.
  // Before the first request.
  void KeepIn(survive::Area& area);
  survive::Area* area() const { return area_; }
  // Whether the kernel has been promised what this program would promise it: a
  // later daemon answers its first request once more, and is not heard.
  bool agrees() const { return agrees_; }
  // Takes over what a dead daemon had. kSystem if that cannot be right.
  Status Restore();
  // FORGETs never come again: those that dead ones had are done to their end.
  void FinishForgets();
  // Those requests of the dead one were not answered, and come again: what they
  // did for the kernel is undone, and what came of them below is remembered.
  void TakeOverRequests(const std::function<bool(uint64_t unique)>& unanswered);
  // A whole message: the kernel forgets inodes. `slot`: of this thread, or of a
  // dead one that had begun with it.
  void Forget(ByteSpan message, survive::WorkSlot& slot);
  // Whether a RELEASE that has come again, of this handle, was done.
  bool IsReleased(uint64_t unique, uint64_t fh) const;

  // A descriptor of the file behind an inode that the kernel holds.
  BackingFd FdOf(Inode& inode) { return inodes_.Open(inode); }

  // Opens the file behind an inode again, through /proc/self/fd: `flags` as in
  // open(2), never following or creating. -1 and errno on failure. Only regular
  // files and directories are ever opened: a device or FIFO that another user
  // put there must not be (CVE-2020-35517).
  int Reopen(Inode& inode, int flags);
  // The same with no more rights than the thread has.
  int OpenAgain(Inode& inode, int flags);

  // Looks `name` up in `parent`: the inode with one lookup counted for the
  // kernel, its name noted, and `st` filled; or null and errno. EAGAIN: the
  // store would make it wait, and `may_wait` is false.
  Inode* Lookup(Inode& parent, const char* name, struct stat* st,
                bool may_wait = true);
  // The same by a node id alone, which the kernel may have from a forged or an
  // old handle (lookup_again.cc); and of the directory that one lies in.
  // ESTALE: there is no such file in the source.
  bool looks_up_by_id() const { return lasting_ids_ != nullptr; }
  Inode* LookupById(uint64_t id, struct stat* st);
  Inode* LookupParent(Inode& dir, struct stat* st);
  // The same for a file just made, open as `fd` (which stays the caller's).
  Inode* Enter(Inode& parent, const char* name, int fd, struct stat* st);
  // The same for whatever was just made under that name.
  Inode* EnterMade(Inode& parent, const char* name, struct stat* st);
  // How the kernel is to do I/O on an open of `inode`; sets fi's members, and
  // `claim`, which lasts as long as the open.
  // Passthrough needs a number for the file, which may fail.
  IoMode ChooseIoMode(Inode& inode, const OpenFacts& facts, fuse_file_info* fi,
                      IoClaim* claim);

  // How that would be if a file opened earlier was opened now and had no other
  // opens.
  IoMode IoModeNow(Inode& inode) {
    const CachePolicy::DataInterest data = DataOf(inode);
    return CachePolicy::ModeFor(
        data, !data.pages && policy_.passthrough() && inode.backing_id() >= 0);
  }

  // Seconds for which the kernel may keep what is answered about `inode`.
  double AttrTimeout(const Inode& inode, mode_t mode) const {
    return inode.io_opens().may_be_stored_to() ? 0 : policy_.AttrTimeout(mode);
  }
  // The same if the kernel asks, at `now_ns`, only for the size, which no map
  // changes.
  double SizeTimeout(Inode& inode, mode_t mode, uint64_t now_ns) const {
    // Rounded up to a tick of the kernel's.
    constexpr double kOneTick = 0.001;
    IoOpens& opens = inode.io_opens();
    if (opens.may_be_stored_to() && opens.InStormOfSizes(now_ns)) {
      return std::min(policy_.AttrTimeout(mode), kOneTick);
    }
    return AttrTimeout(inode, mode);
  }
  // The attributes of `inode`, which the kernel holds, change by an operation
  // of which the kernel does not know that: it forgets what it has kept.
  void ForgetAttributes(const Inode& inode) const;

  // What fuse_reply_entry wants to know.
  fuse_entry_param EntryParam(const Inode& inode, const struct stat& st) const;

  bool flush_below() const { return flush_below_; }
  // Every call below is made as its caller.
  bool asks_as_caller() const { return asks_as_caller_; }
  // The backing file system names trusted. attributes to everybody.
  bool lists_trusted() const { return lists_trusted_; }
  // Writes to set-user-id files are told to us as such.
  bool told_of_privileged_writes() const { return told_of_privileged_writes_; }
  // The process of thread `tid`, which waits for the answer to an operation of
  // this kind; null if it is gone. Valid until this thread asks again.
  const CallerInfo* CallerOf(Op op, uint32_t tid);
  // Thread `tid` opens a program that it is about to run.
  void NoteExec(pid_t tid);
  // A descriptor of /proc.
  int proc() const { return processes_.proc(); }

  // The mount is gone: closes what is still open, and records that.
  void ReleaseAll();

  // How threads that serve requests are scheduled from now on: a number that
  // set_up_worker() knows. Each adopts it with its next request.
  void SetWorkerPolicy(int policy) {
    worker_policy_.store(policy, std::memory_order_relaxed);
  }

  // Called at the beginning of each operation: a worker's first one sets up its
  // thread, which libfuse starts without notice.
  void EnterWorker(fuse_req_t req) {
    TsanAcquire(this);  // what was answered before
    thread_local int policy = kNotSetUp;
    if (const int wanted = worker_policy_.load(std::memory_order_relaxed);
        policy != wanted) [[unlikely]] {
      policy = wanted;
      SetUpWorker(req, wanted);
    }
    if (asks_as_caller_) [[unlikely]] {
      const fuse_ctx* caller = ContextOf(req);
      ThreadCredentials::Current().Become(caller->uid, caller->gid);
    }
  }

  // Requests come over io_uring; through /dev/fuse come FORGETs only.
  bool rings_serve() const {
    return rings_serve_.load(std::memory_order_relaxed);
  }

  // Where the system calls of callers can be asked for; outlives this. Before
  // the first request.
  void SetSystemCalls(SystemCalls* calls) { system_calls_ = calls; }

  // What operations are about to destroy is kept there; outlives this. Before
  // the first request.
  void SetKeeping(const Keeping* keeping) { keeping_ = keeping; }
  const Keeping* keeping() const { return keeping_; }

  // The connection, once mounted.
  void SetSession(fuse_session* session) {
    session_ = session;
    backing_.SetDevice(fuse_session_fd(session));
  }

  // libfuse calls this when the connection is made.
  void NegotiateFeatures(fuse_conn_info* conn);
  void NoteAgreed(const fuse_conn_info& conn);

  // EventResolver:
  void ResolveCaller(Event& event) override;
  void ResolveAttributes(Event& event) override;
  void ResolveSyscall(Event& event) override;
  void ResolveDetails(Event& event) override;
  bool ForEachAncestor(Event& event, void* context,
                       bool (*visit)(void* context, uint32_t pid,
                                     std::string_view comm)) override;
  bool StateOf(uint64_t node, FileState* state) override;
  void ForEachTouched(
      const std::function<bool(uint64_t inode)>& touched, bool contents,
      const std::function<void(std::string_view path, const FileState& state)>&
          visit) override;
  bool LinkOf(uint64_t node, NodeLink* link) override {
    return inodes_.LinkOf(node, link);
  }
  void ForEachName(uint64_t node, void* context,
                   void (*visit)(void*, std::string_view)) override {
    inodes_.ForEachName(node, context, visit);
  }

  // FileStates:
  std::optional<uint32_t> ChecksumOf(uint64_t node, uint64_t most) override;
  void ForEachOpen(
      const std::function<void(const OpenFile& file)>& visit) override;

 private:
  FileSystem(FileSystemOptions options, EventSink& sink,
             const NameMatcher& names, ProcessTable& processes)
      : options_(options),
        sink_(sink),
        names_(names),
        processes_(processes),
        policy_(options.visibility, sink),
        inodes_(backing_, options.max_inode_fds),
        open_files_(options.max_open_files, options.open_files_for_root),
        opens_without_descriptor_(kMostSurvivingOpens, kMostSurvivingOpens / 8),
        // Most of the pool stays with those who wait for the store.
        holds_(std::clamp<size_t>(options.max_waiting / 4, 1,
                                  HoldLot::kMostWaiting)),
        side_pool_({.tasks = options.max_waiting,
                    .for_root = options.max_waiting / 8,
                    .aside = options.max_aside,
                    .aside_bytes = options.waiting_bytes}) {}

  void FinishForget(survive::WorkSlot& slot);

  static constexpr int kNotSetUp = -2;
  static constexpr int kAsItIs = -1;
  void SetUpWorker(fuse_req_t req, int policy);
  Inode* AcquireSame(int dir, const char* name, const struct stat& st);
  Inode* EnterUnnamed(UniqueFd fd, const struct stat& st);
  void NameAsBelow(const std::string& where);
  Inode* LookBelow(Inode& parent, const char* name, struct stat* st,
                   bool may_wait);
  Inode* HoldToName(Inode* inode, UniqueFd fd, const struct stat& st);
  std::optional<BackingFile> HoldOpen(int fd, bool named);
  CachePolicy::DataInterest DataOf(Inode& inode);
  int32_t BackingIdOf(Inode& inode);
  bool IsAppendOnly(Inode& inode);
  bool MayBeSetId(Inode& inode, int fd);
  int OpenAnew(Inode& inode, int flags);

  const FileSystemOptions options_;
  EventSink& sink_;
  const NameMatcher& names_;
  ProcessTable& processes_;
  SystemCalls* system_calls_ = nullptr;  // may be null
  const Keeping* keeping_ = nullptr;     // null: nothing is kept
  CachePolicy policy_;
  std::atomic<int> worker_policy_ = kAsItIs;
  std::atomic<bool> rings_serve_ = false;
  fuse_session* session_ = nullptr;
  BackingFiles backing_;
  std::unique_ptr<LastingIds> lasting_ids_;  // null: ids only count
  InodeTable inodes_;
  UserShares open_files_;
  UserShares opens_without_descriptor_;
  bool may_hang_below_ = false;
  WaitRules waits_;
  Closer closer_;
  HandleTable handles_;  // handles refer to inodes and shares
  LockTable locks_;
  ChangeOrder change_order_;
  survive::Area* area_ = nullptr;  // null: nothing survives
  std::atomic<uint64_t> own_next_handle_id_{1};
  std::atomic<uint64_t>* next_handle_id_ = &own_next_handle_id_;
  bool agrees_ = true;
  bool flush_below_ = false;     // close(2) below does something (NFS, …)
  bool asks_as_caller_ = false;  // whatever is done below (NFS, FUSE, …)
  bool lists_trusted_ = false;
  std::atomic<bool> told_of_privileged_writes_ = false;
  bool keeps_reserve_ = true;   // what is below has blocks for root alone
  bool stacked_below_ = false;  // the backing file system is itself stacked
  HoldLot holds_;
  SidePool side_pool_;  // its threads use all of the above
};

inline Handle& HandleOf(const fuse_file_info* fi) { return HandleAt(fi->fh); }

}  // namespace tracefs
