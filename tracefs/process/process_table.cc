// Cached lookups of callers (process_table.h).
#include "tracefs/process/process_table.h"

#include <sys/random.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <utility>

#include "tracefs/base/clock.h"
#include "tracefs/process/siphash.h"

namespace tracefs {
namespace {

uint64_t NextTableId() {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

std::array<uint64_t, 2> RandomKey() {
  // Should the system have no randomness yet, serials are still right; only
  // somebody who works at it could then make two collide.
  std::array<uint64_t, 2> key = {RealNs(), MonotonicNs()};
  [[maybe_unused]] const ssize_t n =
      ::getrandom(key.data(), sizeof key, GRND_NONBLOCK);
  return key;
}

}  // namespace

thread_local constinit ProcessTable::ThreadCache* ProcessTable::thread_cache_ =
    nullptr;

struct ProcessTable::ThreadCacheOwner {
  ~ThreadCacheOwner() { delete std::exchange(thread_cache_, nullptr); }
};

Result<std::unique_ptr<ProcessTable>> ProcessTable::Create(
    const Options& options) {
  Result<ProcReader> reader = ProcReader::Open(options.proc);
  if (!reader.ok()) return reader.status();
  std::unique_ptr<ProcConnector> connector;
  if (options.events) {
    // Without one, entries are read again more often; nothing else changes.
    if (auto opened = ProcConnector::Open(); opened.ok()) {
      connector = *std::move(opened);
    }
  }
  return std::unique_ptr<ProcessTable>(
      new ProcessTable(options, *std::move(reader), std::move(connector)));
}

ProcessTable::ProcessTable(const Options& options, ProcReader reader,
                           std::unique_ptr<ProcConnector> connector)
    : id_(NextTableId()),
      options_(options),
      reader_(std::move(reader)),
      serial_key_(RandomKey()),
      connector_(std::move(connector)),
      ttl_ns_(options.ttl_without_events_ns),
      own_versions_(options.versions == nullptr
                        ? std::make_unique<TaskVersions>()
                        : nullptr),
      versions_(options.versions == nullptr ? *own_versions_
                                            : *options.versions),
      shared_(kSharedEntries),
      details_(reader_.fd()) {}

ProcessTable::~ProcessTable() {
  if (connector_ != nullptr) connector_->Stop();
}

void ProcessTable::Start() {
  std::lock_guard guard(start_mu_);
  if (++users_ > 1 || connector_ == nullptr) return;
  if (!connector_->Start(this).ok()) return;
  // What was read before the events began may be wrong without notice.
  versions_.AllChanged();
  ttl_ns_.store(options_.ttl_with_events_ns, std::memory_order_relaxed);
  receiving_.store(true, std::memory_order_relaxed);
}

void ProcessTable::Stop() {
  std::lock_guard guard(start_mu_);
  if (--users_ > 0 || !receiving_.load(std::memory_order_relaxed)) return;
  receiving_.store(false, std::memory_order_relaxed);
  ttl_ns_.store(options_.ttl_without_events_ns, std::memory_order_relaxed);
  connector_->Stop();
  versions_.AllChanged();
}

bool ProcessTable::TakeReports() { return connector_->TakeReports(); }

void ProcessTable::NoteExec(uint32_t tid, uint64_t now_ns) {
  if (tid == 0) return;
  exec_until_ns_[tid % kExecs].store(
      now_ns + ttl_ns_.load(std::memory_order_relaxed),
      std::memory_order_relaxed);
  Invalidate(tid);
}

void ProcessTable::OnChange(uint32_t tid) {
  changes_.fetch_add(1, std::memory_order_relaxed);
  exec_until_ns_[tid % kExecs].store(0, std::memory_order_relaxed);
  Invalidate(tid);
}

void ProcessTable::OnLost() {
  losses_.fetch_add(1, std::memory_order_relaxed);
  versions_.AllChanged();
}

const CallerInfo* ProcessTable::Refresh(uint32_t tid, uint64_t now_ns,
                                        Request request, bool may_be_kept) {
  if (tid == 0) return nullptr;
  if (thread_cache_ == nullptr) {
    thread_local ThreadCacheOwner owner;
    // Only its destructor is wanted; naming it makes sure that it is made.
    static_cast<void>(owner);
    thread_cache_ = new ThreadCache;
  }
  if (thread_cache_->table_id != id_) {
    thread_cache_->entries.fill(Entry());
    thread_cache_->table_id = id_;
  }
  Entry& entry = thread_cache_->entries[tid % kThreadEntries];
  const CallerInfo& caller = entry.reading.caller;

  const size_t place = tid % kSharedEntries;
  std::mutex& mu = shard_mu_[place % kShards];
  {
    std::lock_guard guard(mu);
    const Entry& shared = shared_[place];
    // Even an outdated one helps to keep the start time.
    if (shared.reading.caller.tid == tid) entry = shared;
  }
  if (may_be_kept && caller.tid == tid && now_ns < entry.expires_ns &&
      entry.version == versions_.Of(tid, caller.pid)) {
    return &caller;
  }
  if (caller.tid != tid) entry = Entry();
  if (!Load(tid, now_ns, request, &entry)) {
    entry = Entry();
    gone_.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  {
    std::lock_guard guard(mu);
    shared_[place] = entry;
  }
  if (keep_parents_.load(std::memory_order_relaxed) != 0) {
    FindAncestors(entry.reading, now_ns);
  }
  return &caller;
}

void ProcessTable::KeepParents(bool keep) {
  if (keep) {
    std::lock_guard lock(parents_mu_);
    parents_.resize(kParents);
  }
  keep_parents_.fetch_add(keep ? 1 : -1, std::memory_order_relaxed);
}

// While the caller waits for us, its ancestors wait for it, as a rule.
void ProcessTable::FindAncestors(const ProcessReading& of, uint64_t now_ns) {
  SetParent(of, versions_.Of(of.caller.pid, of.caller.pid), now_ns);
  uint32_t pid = of.caller.ppid;
  for (size_t depth = 0; depth < kMaxDepth && pid > 1; ++depth) {
    // Those above were found out with it.
    if (KnownParent(pid, now_ns, kParentNs) != 0) return;
    const uint64_t version = versions_.Of(pid, pid);
    ProcessReading reading;
    if (!reader_.Read(pid, /*may_be_in_exec=*/true, &reading)) return;
    SetParent(reading, version, now_ns);
    pid = reading.caller.ppid;
  }
}

ProcessTable::Parent ProcessTable::SetParent(const ProcessReading& reading,
                                             uint64_t version,
                                             uint64_t now_ns) {
  const CallerInfo& caller = reading.caller;
  Parent parent = {.pid = caller.pid,
                   .ppid = caller.ppid,
                   .read_ns = now_ns,
                   .version = version,
                   .number = reading.process_number};
  const std::string_view comm = caller.comm().substr(0, parent.comm.size());
  std::copy(comm.begin(), comm.end(), parent.comm.begin());
  parent.comm_size = static_cast<uint8_t>(comm.size());
  std::lock_guard lock(parents_mu_);
  if (parents_.empty()) return parent;
  Parent& known = parents_[caller.pid % kParents];
  // An orphan gets another parent; who began it stays who it was.
  if (known.pid == parent.pid && known.number == parent.number &&
      known.number != 0) {
    parent.ppid = known.ppid;
  }
  known = parent;
  return parent;
}

bool ProcessTable::ReadParent(uint32_t pid, uint64_t now_ns, Parent* found) {
  const uint64_t version = versions_.Of(pid, pid);
  ProcessReading reading;
  if (!reader_.Read(pid, /*may_be_in_exec=*/true, &reading) ||
      reading.caller.pid != pid) {
    return false;
  }
  *found = SetParent(reading, version, now_ns);
  return true;
}

bool ProcessTable::FindParent(uint32_t pid, uint64_t now_ns,
                              uint64_t patience_ns, Parent* found) {
  std::lock_guard lock(parents_mu_);
  if (parents_.empty()) return false;
  const Parent& parent = parents_[pid % kParents];
  if (parent.pid != pid) return false;
  const bool fresh = now_ns - parent.read_ns <= patience_ns &&
                     parent.version == versions_.Of(pid, pid);
  if (!fresh && patience_ns != UINT64_MAX) return false;
  *found = parent;
  return true;
}

uint32_t ProcessTable::KnownParent(uint32_t pid, uint64_t now_ns,
                                   uint64_t patience_ns) {
  Parent found;
  return FindParent(pid, now_ns, patience_ns, &found) ? found.ppid : 0;
}

bool ProcessTable::ForEachAncestor(const CallerInfo& caller, uint64_t now_ns,
                                   void* context,
                                   bool (*visit)(void* context, uint32_t pid,
                                                 std::string_view comm)) {
  Parent own;
  uint32_t pid = caller.ppid;
  if (FindParent(caller.pid, now_ns, UINT64_MAX, &own)) pid = own.ppid;
  for (size_t depth = 0; depth < kMaxDepth; ++depth) {
    if (pid == 0) return true;  // the first process, or another name space
    Parent found;
    // If it is gone, as it was last seen.
    if (!FindParent(pid, now_ns, kParentNs, &found) &&
        !ReadParent(pid, now_ns, &found) &&
        !FindParent(pid, now_ns, UINT64_MAX, &found)) {
      visit(context, pid, {});
      return false;
    }
    if (!visit(context, pid, {found.comm.data(), found.comm_size})) return true;
    pid = found.ppid;
  }
  return false;
}

Status ProcessTable::KeepDetails(bool keep) {
  std::lock_guard lock(details_mu_);
  if (keep && details_users_ == 0) {
    if (Status s = details_.Start(options_.make_find_exe
                                      ? options_.make_find_exe()
                                      : CallerDetailsReader::FindExe());
        !s.ok()) {
      return s;
    }
  }
  details_users_ += keep ? 1 : -1;
  if (details_users_ == 0) details_.Stop();
  return Status::Ok();
}

const CallerDetails* ProcessTable::DetailsOf(const CallerInfo& caller,
                                             uint64_t now_ns, Request request) {
  thread_local std::shared_ptr<const CallerDetails> kept;
  kept = details_.Of(caller, versions_.Of(caller.pid, caller.pid), now_ns,
                     request == kOther ? CallerDetailsReader::kOfRequestNs : 0);
  return kept.get();
}

std::shared_ptr<const CallerDetails> ProcessTable::DetailsLater(
    const CallerInfo& then, uint64_t now_ns) {
  // It tells a process from a later one with the same number.
  if (then.start_time == 0) return nullptr;
  const uint64_t version = versions_.Of(then.pid, then.pid);
  ProcessReading reading;
  if (reader_.Read(then.tid != 0 ? then.tid : then.pid,
                   /*may_be_in_exec=*/true, &reading) &&
      reading.caller.pid == then.pid && reading.caller.comm() == then.comm()) {
    reading.caller.serial = SerialOf(reading.caller);
    const std::shared_ptr<const KnownDetails> details = details_.Of(
        reading.caller, version, now_ns, CallerDetailsReader::kOfOthersNs);
    if (details != nullptr && details->start_time == then.start_time) {
      return details;
    }
  }
  return details_.Kept(SerialOf(then));
}

uint32_t ProcessTable::ParentOf(uint32_t pid, uint64_t now_ns) {
  if (const uint32_t parent = KnownParent(pid, now_ns, kParentNs)) {
    return parent;
  }
  ProcessReading reading;
  if (reader_.Read(pid, /*may_be_in_exec=*/true, &reading)) {
    return reading.caller.ppid;
  }
  return KnownParent(pid, now_ns, UINT64_MAX);  // it is gone
}

bool ProcessTable::Load(uint32_t tid, uint64_t now_ns, Request request,
                        Entry* entry) {
  reads_.fetch_add(1, std::memory_order_relaxed);
  CallerInfo& caller = entry->reading.caller;
  // The versions from before the reading: a change during it makes the entry
  // stale at once. Which process it is, and so the second version, is only
  // known afterwards: if that was another, read again. After a few rounds take
  // what there is; its time is short anyway.
  uint32_t pid = caller.tid == tid ? caller.pid : tid;
  for (int round = 0; round < 4; ++round) {
    entry->version = versions_.Of(tid, pid);
    if (!reader_.Read(tid, request != kOther, &entry->reading)) return false;
    if (caller.pid == pid) break;
    pid = caller.pid;
  }
  // One that lacks its start time is good for this request only, as is one that
  // is about to become another.
  const bool in_exec =
      now_ns < exec_until_ns_[tid % kExecs].load(std::memory_order_relaxed);
  entry->expires_ns = in_exec || (caller.start_time == 0 && request != kOther)
                          ? 0
                          : now_ns + ttl_ns_.load(std::memory_order_relaxed);
  caller.serial = SerialOf(caller);
  return true;
}

ProcessTable::Request ProcessTable::RequestOf(Op op) {
  return (Info(op).traits & OpTrait::kMayBeExec) != 0 ? kMayBeExec : kOther;
}

uint64_t ProcessTable::SerialOf(const CallerInfo& info) const {
  struct Content {
    uint32_t pid, ppid, pgid, sid;
    uint64_t start_time;
    std::array<char, 64> comm;
    uint64_t comm_size;
  } content = {info.pid,        info.ppid,       info.pgid,     info.sid,
               info.start_time, info.comm_bytes, info.comm_size};
  const uint64_t hash =
      SipHash24(serial_key_, std::as_bytes(std::span(&content, 1)));
  return hash != 0 ? hash : 1;
}

ProcessTable::Stats ProcessTable::GetStats() const {
  return {.reads = reads_.load(std::memory_order_relaxed),
          .gone = gone_.load(std::memory_order_relaxed),
          .changes = changes_.load(std::memory_order_relaxed),
          .losses = losses_.load(std::memory_order_relaxed),
          .events = receiving_.load(std::memory_order_relaxed)};
}

}  // namespace tracefs
