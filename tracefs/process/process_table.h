// Who did it: from the thread id in a FUSE request to its process.
//
// What /proc says of a task is kept for each worker thread (a hit costs a few
// nanoseconds) and, behind that, once for all. It is looked up again
//  - when the kernel reports that the task executed a program, was renamed,
//    began a session or ended (proc_connector.h), so that a reused pid is
//    never taken for its predecessor. The report is in our socket before the
//    task goes on: the thread that serves a request takes what is there before
//    it uses what is kept, so that no request carries an old name;
//  - when Options::versions say so: of a command that tracefs-run follows;
//  - while the task is in execve(2), from the moment it opens a program of the
//    mount: the new name comes before the report;
//  - a second after it was read, for what the kernel does not report (setpgid,
//    a dead parent); 50 ms where there are no reports at all, as in containers
//    and other pid namespaces. There, a task that runs a program which does not
//    lie in the mount carries the old name that long, unless it is followed.
//
// Memory: 34 KiB for each thread that resolves, 310 KiB for all, 256 KiB more
// where trees of processes are counted; entries push one another out.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/event/event.h"
#include "tracefs/process/caller_details.h"
#include "tracefs/process/proc_connector.h"
#include "tracefs/process/proc_reader.h"
#include "tracefs/process/task_versions.h"

namespace tracefs {

class ProcessTable final : private ProcConnector::Observer {
 public:
  struct Options {
    const char* proc = "/proc";
    bool events = true;  // use the proc connector if it can be had
    uint64_t ttl_with_events_ns = 1'000'000'000;
    uint64_t ttl_without_events_ns = 50'000'000;
    // Finds the file that a process runs, for DetailsOf; called by one thread,
    // made when somebody wants details. May be empty.
    std::function<CallerDetailsReader::FindExe()> make_find_exe = {};
    // Changed by whoever follows processes; outlives the table. Null: nobody
    // does.
    TaskVersions* versions = nullptr;
  };
  struct Stats {
    uint64_t reads = 0;    // of /proc: misses and refreshes
    uint64_t gone = 0;     // callers that could not be found
    uint64_t changes = 0;  // reported by the kernel
    uint64_t losses = 0;   // of such reports; each made everybody stale
    bool events = false;   // they are being received now
  };

  // Opens /proc and the event socket; a sandbox may close in after that. Fails
  // only for want of a proper /proc: see ProcReader::Open.
  static Result<std::unique_ptr<ProcessTable>> Create(const Options& options);
  static Result<std::unique_ptr<ProcessTable>> Create() {
    return Create(Options());
  }
  // No thread may be in Resolve.
  ~ProcessTable() override;
  ProcessTable(const ProcessTable&) = delete;
  ProcessTable& operator=(const ProcessTable&) = delete;

  // To be called when somebody begins and ends to need callers: events are
  // received between the first Start and the last Stop, and forks and exits of
  // the whole machine cost a little more meanwhile. Resolve works without.
  void Start();
  void Stop();

  // The process behind a task that waits for us. Null for tid 0 and where the
  // task is gone or hidden. `now_ns` is the current MonotonicNs(), give or take
  // a request. The object is this thread's own and good until its next call.
  // Equal content has an equal serial, different content a different one (but
  // for a chance of 2^-64 per pair); the tid is not part of the content.
  //
  // `request` says whether the task may be in the middle of execve(2), closing
  // descriptors: RequestOf(op), or kMayBeExec if one does not know. There less
  // can be asked (proc_reader.h): the start time of a process not seen before
  // is then 0, and is found out with its next other request.
  enum Request : bool { kOther, kMayBeExec };
  static Request RequestOf(Op op);
  const CallerInfo* Resolve(uint32_t tid, uint64_t now_ns, Request request) {
    const bool heard = HearChanges();
    const ThreadCache* cache = thread_cache_;
    if (heard && cache != nullptr && cache->table_id == id_) [[likely]] {
      const Entry& entry = cache->entries[tid % kThreadEntries];
      const CallerInfo& caller = entry.reading.caller;
      if (caller.tid == tid && now_ns < entry.expires_ns &&
          entry.version == versions_.Of(tid, caller.pid)) {
        return &caller;
      }
    }
    return Refresh(tid, now_ns, request, heard);
  }

  // The task opens a program to run it: until it does, or a moment has passed,
  // nothing is kept of it. Threads: any.
  void NoteExec(uint32_t tid, uint64_t now_ns);

  // For those who count trees of processes: while anybody wants to know, the
  // ancestors of callers are found out while the callers wait, for some are
  // gone when they are asked about. It costs a caller that was not seen before
  // three system calls for each ancestor that was not, either.
  void KeepParents(bool keep);
  // The parent of a process, 0 if that is not known. Threads: any.
  uint32_t ParentOf(uint32_t pid, uint64_t now_ns);

  // The ancestors of a process, as EventResolver::ForEachAncestor has it: who
  // began it, if that was seen, whoever its parent is now. Without KeepParents
  // it is the line as it is now, from the parent that `caller` had. Threads:
  // any.
  bool ForEachAncestor(const CallerInfo& caller, uint64_t now_ns, void* context,
                       bool (*visit)(void* context, uint32_t pid,
                                     std::string_view comm));

  // While anybody wants to know what else there is to know of callers. Threads:
  // any.
  Status KeepDetails(bool keep);
  // What it is; good until this thread asks again. `request`: in the middle of
  // execve(2) only what is known already is said. Null: not known.
  const CallerDetails* DetailsOf(const CallerInfo& caller, uint64_t now_ns,
                                 Request request);

  // What a process is, asked some time after it did something, by somebody for
  // whom no request waits: what /proc says of the same process under the same
  // name, or, if it has ended, what DetailsOf said of it. Null: it has ended or
  // runs another program, and nobody had asked; or its start time is not known.
  // Needs KeepDetails. Takes half a second at most. Threads: any.
  std::shared_ptr<const CallerDetails> DetailsLater(const CallerInfo& then,
                                                    uint64_t now_ns);

  // What is known of this task or process is wrong.
  void Invalidate(uint32_t tid) { versions_.Changed(tid); }

  Stats GetStats() const;

  // A descriptor of /proc (O_PATH).
  int proc() const { return reader_.fd(); }

 private:
  static constexpr size_t kThreadEntries = 256;
  static constexpr size_t kSharedEntries = 2048;
  static constexpr size_t kShards = 32;
  static constexpr size_t kExecs = 1024;
  static constexpr size_t kParents = 16384;
  static constexpr size_t kMaxDepth = 64;
  // How long a parent is taken for the same without another look.
  static constexpr uint64_t kParentNs = 1'000'000'000;

  struct Entry {
    uint64_t expires_ns = 0;
    uint64_t version = 0;
    ProcessReading reading;  // caller.tid 0: empty
  };
  struct Parent {
    uint32_t pid = 0;
    uint32_t ppid = 0;
    uint64_t read_ns = 0;
    uint64_t version = 0;
    uint64_t number = 0;  // ProcessReading::process_number
    std::array<char, 16> comm{};
    uint8_t comm_size = 0;
  };
  struct ThreadCache {
    uint64_t table_id = 0;
    std::array<Entry, kThreadEntries> entries;
  };
  // Frees the cache when its thread ends.
  struct ThreadCacheOwner;

  ProcessTable(const Options& options, ProcReader reader,
               std::unique_ptr<ProcConnector> connector);

  // Takes what the kernel has reported up to now. False if another thread is
  // doing so: what it took may not have been noted yet.
  bool HearChanges() {
    return !receiving_.load(std::memory_order_relaxed) || TakeReports();
  }
  bool TakeReports();
  const CallerInfo* Refresh(uint32_t tid, uint64_t now_ns, Request request,
                            bool may_be_kept);
  bool Load(uint32_t tid, uint64_t now_ns, Request request, Entry* entry);
  void FindAncestors(const ProcessReading& of, uint64_t now_ns);
  // What is kept of it from now on, if anything is.
  Parent SetParent(const ProcessReading& reading, uint64_t version,
                   uint64_t now_ns);
  // As /proc has it now; false if it is gone.
  bool ReadParent(uint32_t pid, uint64_t now_ns, Parent* found);
  bool FindParent(uint32_t pid, uint64_t now_ns, uint64_t patience_ns,
                  Parent* found);
  uint32_t KnownParent(uint32_t pid, uint64_t now_ns, uint64_t patience_ns);
  uint64_t SerialOf(const CallerInfo& info) const;
  void OnChange(uint32_t tid) override;
  void OnLost() override;

  static thread_local constinit ThreadCache* thread_cache_;

  const uint64_t id_;  // no two tables of the process share it
  const Options options_;
  const ProcReader reader_;
  const std::array<uint64_t, 2> serial_key_;

  std::mutex start_mu_;
  // Guarded by start_mu_.
  int users_ = 0;
  const std::unique_ptr<ProcConnector> connector_;  // may be null

  std::atomic<uint64_t> ttl_ns_;
  std::atomic<bool> receiving_{false};
  const std::unique_ptr<TaskVersions> own_versions_;  // null: of the options
  TaskVersions& versions_;
  // Until when a task may be in execve(2), by tid % kExecs.
  std::array<std::atomic<uint64_t>, kExecs> exec_until_ns_{};
  std::array<std::mutex, kShards> shard_mu_;
  // Entry i is guarded by shard_mu_[i % kShards].
  std::vector<Entry> shared_;

  std::atomic<int> keep_parents_{0};  // how many want them
  std::mutex parents_mu_;
  std::vector<Parent> parents_;  // guarded by parents_mu_; empty until wanted

  std::mutex details_mu_;
  int details_users_ = 0;        // guarded by details_mu_
  CallerDetailsReader details_;  // started while there are users

  std::atomic<uint64_t> reads_{0};
  std::atomic<uint64_t> gone_{0};
  std::atomic<uint64_t> changes_{0};
  std::atomic<uint64_t> losses_{0};
};

}  // namespace tracefs
