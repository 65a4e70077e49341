// FileSystem: what events and traces need besides the request.
#include <sys/stat.h>

#include <vector>

#include "tracefs/base/clock.h"
#include "tracefs/fs/credentials.h"
#include "tracefs/fs/file_system.h"
#include "tracefs/fs/op_scope.h"
#include "tracefs/fs/read_state.h"

namespace tracefs {

const CallerInfo* FileSystem::CallerOf(Op op, uint32_t tid) {
  return processes_.Resolve(tid, MonotonicNs(), ProcessTable::RequestOf(op));
}

std::shared_ptr<HoldLot::Hold> FileSystem::HoldOf(fuse_req_t req, Op op,
                                                  HoldLot::Waiter* who) {
  const fuse_ctx& context = *fuse_req_ctx(req);
  if (context.pid == 0) return nullptr;  // the kernel's own
  const uint64_t now = MonotonicNs();
  const auto tid = static_cast<uint32_t>(context.pid);
  const CallerInfo* const caller = CallerOf(op, tid);
  who->pid = caller == nullptr ? tid : caller->pid;
  if (caller != nullptr) who->comm = caller->comm();
  who->op = op;
  who->since_ns = now;
  return holds_.Meet(who->pid, context.uid, now, [&](uint32_t pid) {
    return processes_.ParentOf(pid, now);
  });
}

void FileSystem::NoteExec(pid_t tid) {
  processes_.NoteExec(static_cast<uint32_t>(tid), MonotonicNs());
}

void FileSystem::ResolveCaller(Event& event) {
  const CallerInfo* caller =
      CallerOf(event.op, static_cast<uint32_t>(event.Get(Field::kTid)));
  if (caller == nullptr) return;
  event.caller = caller;
  event.Set(Field::kPid, caller->pid);
  event.Set(Field::kPpid, caller->ppid);
  event.Set(Field::kSid, caller->sid);
  event.Set(Field::kPgid, caller->pgid);
}

void FileSystem::ResolveSyscall(Event& event) {
  if (system_calls_ == nullptr) return;
  // No caller waits in a call for these, or that is unknown: system_calls.h.
  if (event.Has(Field::kInferred) && event.Get(Field::kInferred) != 0) return;
  if (event.Has(Field::kMapped) && event.Get(Field::kMapped) != 0) return;
  if (event.op == Op::read_ && !event.Has(Field::kMapped)) return;
  const bool moves_data = event.op == Op::read_ || event.op == Op::write_ ||
                          event.op == Op::fsync_ || event.op == Op::fallocate_;
  const auto tid = static_cast<uint32_t>(event.Get(Field::kTid));
  if (const auto call = system_calls_->CallOf(tid, moves_data)) {
    event.Set(Field::kSyscall, *call);
  }
}

void FileSystem::ResolveDetails(Event& event) {
  if (event.caller == nullptr) return;
  // An inferred caller need not be waiting for us, and may be gone.
  const bool inferred =
      event.Has(Field::kInferred) && event.Get(Field::kInferred) != 0;
  event.details = processes_.DetailsOf(
      *event.caller, MonotonicNs(),
      inferred ? ProcessTable::kMayBeExec : ProcessTable::RequestOf(event.op));
}

bool FileSystem::ForEachAncestor(Event& event, void* context,
                                 bool (*visit)(void* context, uint32_t pid,
                                               std::string_view comm)) {
  if (event.caller == nullptr) return false;
  return processes_.ForEachAncestor(*event.caller, MonotonicNs(), context,
                                    visit);
}

void FileSystem::ResolveAttributes(Event& event) {
  // After the reply the kernel may have forgotten the inode: only a search by
  // id is safe, and its descriptor only while the table keeps it.
  struct stat st;
  if (event.node != 0 && inodes_.Stat(event.node, &st)) event.SetAttributes(st);
}

bool FileSystem::StateOf(uint64_t node, FileState* state) {
  const UniqueFd fd = inodes_.Descriptor(node);
  return fd && ReadFileState(options_.proc_self_fd, fd.get(), state);
}

void FileSystem::ForEachTouched(
    const std::function<bool(uint64_t)>& touched, bool contents,
    const std::function<void(std::string_view, const FileState&)>& visit) {
  if (may_hang_below_) return;  // the end of a trace must not wait forever
  ThreadCredentials::Current().AllowOverrides(kOverrides);
  Inode* const top = inodes_.Find(FUSE_ROOT_ID);
  if (top == nullptr) return;
  UniqueFd fd(OpenAnew(*top, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd) {
    WalkTouched(std::move(fd), options_.proc_self_fd, touched, contents, visit);
  }
}

std::optional<uint32_t> FileSystem::ChecksumOf(uint64_t node, uint64_t most) {
  if (may_hang_below_) return std::nullopt;
  const UniqueFd fd = inodes_.Descriptor(node);
  if (!fd) return std::nullopt;
  ThreadCredentials::Current().AllowOverrides(kOverrides);
  return StableChecksum(options_.proc_self_fd, fd.get(), most);
}

void FileSystem::ForEachOpen(
    const std::function<void(const OpenFile&)>& visit) {
  if (may_hang_below_) return;
  ThreadCredentials::Current().AllowOverrides(kOverrides);
  // The kernel may forget any of them meanwhile: hence by id.
  struct Found {
    uint64_t node;
    OpenFile file;
  };
  std::vector<Found> found;
  handles_.ForEach([&](const Handle& handle) {
    const LastCaller::Seen seen = handle.last_caller.Get();
    Found& one = found.emplace_back();
    one.node = handle.inode.id();
    one.file.fh = handle.id;
    one.file.flags = static_cast<uint32_t>(handle.flags);
    one.file.tid = seen.tid;
    one.file.uid = seen.uid;
    one.file.gid = seen.gid;
  });
  for (Found& one : found) {
    if (!StateOf(one.node, &one.file.state)) continue;
    PathBuffer buffer;
    if (one.file.state.st.st_nlink != 0) {
      one.file.path = PathOf(*this, one.node, {}, buffer);
    }
    visit(one.file);
  }
}

}  // namespace tracefs
