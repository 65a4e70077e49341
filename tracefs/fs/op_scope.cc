#include "tracefs/fs/op_scope.h"

#include <array>
#include <climits>
#include <utility>

namespace tracefs {

OpScope::OpScope(FileSystem& fs, Op op)
    : req_(nullptr), op_(op), fs_(fs), interest_(fs_.sink().InterestIn(op)) {
  if (interest_ != 0) MakeEvent(op, fuse_ctx{});
}

void OpScope::MakeEvent(Op op, const fuse_ctx& caller) {
  Event& event = event_.emplace();
  event.op = op;
  event.resolver = &fs_;
  // Once, before the first match: all bits are at least as new.
  if ((interest_ & EventSink::kNames) != 0) {
    event.name_generation = fs_.names().generation();
  }
  const uint64_t now = fs_.sink().Enter();
  const HandedRequest* handed = HandedRequest::Current();
  event.Set(Field::kTime, handed != nullptr && handed->begin_ns() != 0
                              ? handed->begin_ns()
                              : now);
  event.Set(Field::kTid, static_cast<uint32_t>(caller.pid));
  event.Set(Field::kUid, caller.uid);
  event.Set(Field::kGid, caller.gid);
}

void OpScope::Leave() {
  if (parked_) {
    fs_.sink().Unpark(event_->Get(Field::kTime));
  } else {
    fs_.sink().Leave();
  }
}

void OpScope::TellBefore() {
  const HandedRequest* handed = HandedRequest::Current();
  if (handed == nullptr || !handed->before_told()) fs_.sink().Before(*event_);
}

bool OpScope::HandOver(std::function<void()> handler, bool told) {
  if (!fs_.MayHandOver(req_)) return false;
  const uint64_t begin = event_ ? event_->Get(Field::kTime) : 0;
  if (begin != 0) fs_.sink().Park(begin);
  const auto request = std::make_shared<HandedRequest>(req_, fs_, begin, told,
                                                       std::move(handler));
  if (!fs_.side_pool().Submit(request,
                              RequestSource::OfThread().replies.get())) {
    request->Refused();
    if (begin != 0) fs_.sink().Unpark(begin);
    ReplyError(EAGAIN);
    return true;
  }
  if (event_) fs_.sink().Leave();
  event_.reset();
  interest_ = 0;
  return true;
}

void OpScope::Park() {
  if (!event_ || parked_) return;
  fs_.sink().Park(event_->Get(Field::kTime));
  fs_.sink().Leave();
  parked_ = true;
}

std::string_view OpScope::Keep(NameBuffer& buffer, std::string_view name) {
  buffer.Set(name);
  return buffer.view();
}

void OpScope::About(Inode& inode) {
  if (!traced()) return;
  if (inode.is_output()) {
    interest_ = 0;
    return;
  }
  Event& event = *event_;
  event.node = inode.id();
  event.node_version = inode.name_version();
  event.rename_epoch = fs_.inodes().rename_epoch();
  event.Set(Field::kInode, inode.number());
  event.Set(Field::kType, inode.type());
  if ((interest_ & EventSink::kNames) != 0) {
    event.name_bits |=
        fs_.inodes().NameBits(inode, fs_.names(), event.name_generation);
  }
}

void OpScope::In(Inode& dir, std::string_view name) {
  if (!traced()) return;
  Event& event = *event_;
  event.parent = dir.id();
  event.parent_version = dir.name_version();
  event.rename_epoch = fs_.inodes().rename_epoch();
  event.Set(Field::kParentInode, dir.number());
  event.name = Keep(name_, name);
  if ((interest_ & EventSink::kNames) != 0) {
    event.name_bits |= fs_.names().Match(name);
  }
}

void OpScope::ByItsName(const Inode& inode) {
  if (!traced()) return;
  NodeLink link;
  // Without a name (O_TMPFILE) it is told by its number alone.
  if (!fs_.LinkOf(inode.id(), &link) || link.parent == 0) {
    event_->NeedAttributes();
    event_->node = 0;
    return;
  }
  event_->parent = link.parent;
  event_->parent_version = link.parent_version;
  event_->name = Keep(name_, link.name.view());
}

void OpScope::Into(Inode& dir, std::string_view name) {
  if (!traced()) return;
  Event& event = *event_;
  event.new_parent = dir.id();
  event.new_parent_version = dir.name_version();
  event.rename_epoch = fs_.inodes().rename_epoch();
  event.Set(Field::kNewParentInode, dir.number());
  event.new_name = Keep(new_name_, name);
  if ((interest_ & EventSink::kNames) != 0) {
    event.name_bits |= fs_.names().Match(name);
  }
}

void OpScope::Through(const Handle& handle) { Set(Field::kFh, handle.id); }

void OpScope::Target(std::string_view target) {
  if (!traced()) return;
  // A worker serves one request at a time.
  thread_local std::array<char, PATH_MAX> copy;
  const size_t size = std::min(target.size(), copy.size());
  target.copy(copy.data(), size);
  event_->target = {copy.data(), size};
}

void OpScope::XattrName(std::string_view name) {
  if (traced()) event_->xattr_name = Keep(new_name_, name);
}

void OpScope::InferCaller(const Handle& handle) {
  if (!traced() || event_->Get(Field::kTid) != 0) return;
  const LastCaller::Seen seen = handle.last_caller.Get();
  event_->Set(Field::kInferred, 1);
  event_->Set(Field::kTid, seen.tid);
  event_->Set(Field::kUid, seen.uid);
  event_->Set(Field::kGid, seen.gid);
  event_->caller_resolved = true;
  if (seen.info.tid == 0) return;
  thread_local CallerInfo copy;
  copy = seen.info;
  event_->caller = &copy;
  event_->Set(Field::kPid, copy.pid);
  event_->Set(Field::kPpid, copy.ppid);
  event_->Set(Field::kSid, copy.sid);
  event_->Set(Field::kPgid, copy.pgid);
}

void OpScope::RememberCaller(Handle& handle) {
  const fuse_ctx* caller = ContextOf(req_);
  if (caller->pid == 0) return;
  LastCaller::Seen seen;
  seen.tid = static_cast<uint32_t>(caller->pid);
  seen.uid = caller->uid;
  seen.gid = caller->gid;
  // Release may come when the process is gone, and pages are written back
  // without one: who it was is found out now, if that is recorded at all.
  const EventSink& sink = fs_.sink();
  const uint32_t interest =
      handle.inode.is_dir()
          ? sink.InterestIn(Op::releasedir_)
          : sink.InterestIn(Op::release_) | sink.InterestIn(Op::write_);
  if (interest == 0) return;
  if ((interest & (EventSink::kCaller | EventSink::kBeforeReply)) != 0) {
    if (traced()) {
      event_->NeedCaller();
      if (event_->caller != nullptr) seen.info = *event_->caller;
    } else if (const CallerInfo* info = fs_.CallerOf(op_, seen.tid)) {
      seen.info = *info;
    }
  }
  handle.last_caller.Set(seen);
}

void OpScope::BeforeReply(int64_t result, int error) {
  Event& event = *event_;
  event.SetResult(result, error);
  event.Set(Field::kLatency, MonotonicNs() - event.Get(Field::kTime));
  if ((interest_ & EventSink::kCaller) != 0) event.NeedCaller();
  if ((interest_ & EventSink::kBeforeReply) != 0) {
    fs_.sink().BeforeReply(event);
  }
}

}  // namespace tracefs
