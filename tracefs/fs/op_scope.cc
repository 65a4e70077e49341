#include "tracefs/fs/op_scope.h"

#include <algorithm>
#include <array>
#include <climits>
#include <utility>

#include "tracefs/base/clock.h"

namespace tracefs {

OpScope::OpScope(FileSystem& fs, Op op)
    : req_(nullptr), op_(op), fs_(fs), begin_ns_(MonotonicNs()) {
  interest_ = fs_.sink().InterestIn(op);
  if ((interest_ & EventSink::kRecord) != 0) {
    Record(interest_, fuse_ctx{});
  }
}

void OpScope::Record(uint32_t interest, const fuse_ctx& caller) {
  Event& event = recording_.emplace(fs_.sink(), op_, interest).event;
  event.resolver = &fs_;
  // Once, before the first match: all bits are at least as new.
  if (Wants(EventSink::kNames)) {
    event.name_generation = fs_.names().generation();
  }
  begin_ns_ = event.Get(Field::kTime);
  const HandedRequest* handed = HandedRequest::Current();
  if (handed != nullptr && handed->begin_ns() != 0) {
    event.Set(Field::kTime, handed->begin_ns());
  }
  event.Set(Field::kTid, static_cast<uint32_t>(caller.pid));
  event.Set(Field::kUid, caller.uid);
  event.Set(Field::kGid, caller.gid);
}

void OpScope::TellBefore() {
  const HandedRequest* handed = HandedRequest::Current();
  if (handed == nullptr || !handed->before_told()) recording_->Before();
}

bool OpScope::HandOver(std::function<void()> handler, bool told, IfFull if_full,
                       size_t bytes) {
  if (!fs_.MayHandOver(req_)) return false;
  // Known to go on before it is given away.
  const auto request = std::make_shared<HandedRequest>(
      req_, fs_, op_, traced() ? &recording_->event : nullptr, told, bytes,
      std::move(handler));
  survive::Area* const area = fs_.area();
  if (area != nullptr) area->Offer();
  switch (fs_.side_pool().Submit(request,
                                 RequestSource::OfThread().replies.get(),
                                 if_full == IfFull::kRefuse)) {
    case SidePool::Taken::kYes:
      recording_.reset();
      if (area != nullptr) area->Leave();
      return true;
    case SidePool::Taken::kFull:
      return false;
    case SidePool::Taken::kRefused:
      ReplyError(EAGAIN);
      return true;
  }
  return false;
}

std::string_view OpScope::Keep(NameBuffer& buffer, std::string_view name) {
  buffer.Set(name);
  return buffer.view();
}

void OpScope::About(Inode& inode) {
  if (!traced()) return;
  Event& event = recording_->event;
  event.node = inode.id();
  event.node_version = inode.name_version();
  event.rename_epoch = fs_.inodes().rename_epoch();
  event.Set(Field::kInode, inode.number());
  event.Set(Field::kType, inode.type());
  if (Wants(EventSink::kNames)) {
    event.name_bits |=
        fs_.inodes().NameBits(inode, fs_.names(), event.name_generation);
  }
}

void OpScope::In(Inode& dir, std::string_view name) {
  if (!traced()) return;
  Event& event = recording_->event;
  event.parent = dir.id();
  event.parent_version = dir.name_version();
  event.rename_epoch = fs_.inodes().rename_epoch();
  event.Set(Field::kParentInode, dir.number());
  event.name = Keep(name_, name);
  if (Wants(EventSink::kNames)) {
    event.name_bits |= fs_.names().Match(name);
  }
}

void OpScope::ByItsName(const Inode& inode) {
  if (!traced()) return;
  Event& event = recording_->event;
  NodeLink link;
  // Without a name (O_TMPFILE) only its number identifies it.
  if (!fs_.LinkOf(inode.id(), &link) || link.parent == 0) {
    event.NeedAttributes();
    event.node = 0;
    return;
  }
  ByName(link);
}

void OpScope::Into(Inode& dir, std::string_view name) {
  if (!traced()) return;
  Event& event = recording_->event;
  event.new_parent = dir.id();
  event.new_parent_version = dir.name_version();
  event.rename_epoch = fs_.inodes().rename_epoch();
  event.Set(Field::kNewParentInode, dir.number());
  event.new_name = Keep(new_name_, name);
  if (Wants(EventSink::kNames)) {
    event.name_bits |= fs_.names().Match(name);
  }
}

void OpScope::Onto(const Handle& destination) {
  if (!traced()) return;
  Inode& inode = destination.inode;
  Event& event = recording_->event;
  event.new_parent = inode.id();
  event.new_parent_version = inode.name_version();
  NodeLink link;
  if (NameOf(destination, &link)) {
    event.new_parent = link.parent;
    event.new_parent_version = link.parent_version;
    event.new_name = Keep(new_name_, link.name.view());
  }
  event.Set(Field::kFhOut, destination.id);
  event.Set(Field::kInodeOut, inode.number());
  if (Wants(EventSink::kNames)) {
    event.name_bits |=
        fs_.inodes().NameBits(inode, fs_.names(), event.name_generation);
  }
}

void OpScope::Through(const Handle& handle) {
  if (!traced()) return;
  Set(Field::kFh, handle.id);
  NodeLink link;
  if (NameOf(handle, &link)) ByName(link);
}

bool OpScope::NameOf(const Handle& handle, NodeLink* link) const {
  // Even if it is the current one now: that may change before it is recorded.
  return handle.inode.may_have_several_names() &&
         fs_.inodes().LinkOf(handle.inode, handle.link_id, link);
}

void OpScope::ByName(const NodeLink& link) {
  Event& event = recording_->event;
  event.parent = link.parent;
  event.parent_version = link.parent_version;
  event.name = Keep(name_, link.name.view());
}

void OpScope::Target(std::string_view target) {
  if (!traced()) return;
  // A worker serves one request at a time.
  thread_local std::array<char, PATH_MAX> copy;
  const size_t size = std::min(target.size(), copy.size());
  target.copy(copy.data(), size);
  recording_->event.target = {copy.data(), size};
}

void OpScope::XattrName(std::string_view name) {
  if (traced()) recording_->event.xattr_name = Keep(new_name_, name);
}

void OpScope::InferCaller(const Handle& handle) {
  if (!traced()) return;
  Event& event = recording_->event;
  if (event.Get(Field::kTid) != 0) return;
  const LastCaller::Seen seen = handle.last_caller.Get();
  event.Set(Field::kInferred, 1);
  event.Set(Field::kTid, seen.tid);
  event.Set(Field::kUid, seen.uid);
  event.Set(Field::kGid, seen.gid);
  event.caller_resolved = true;
  if (seen.info.tid == 0) return;
  thread_local CallerInfo copy;
  copy = seen.info;
  event.caller = &copy;
  event.Set(Field::kPid, copy.pid);
  event.Set(Field::kPpid, copy.ppid);
  event.Set(Field::kSid, copy.sid);
  event.Set(Field::kPgid, copy.pgid);
}

void OpScope::RememberCaller(Handle& handle) {
  const fuse_ctx* caller = ContextOf(req_);
  if (caller->pid == 0) return;
  LastCaller::Seen seen;
  seen.tid = static_cast<uint32_t>(caller->pid);
  seen.uid = caller->uid;
  seen.gid = caller->gid;
  // Release may come when the process is gone, and pages are written back
  // without one: the caller is found out now, if it is recorded at all.
  const EventSink& sink = fs_.sink();
  const uint32_t interest =
      handle.inode.is_dir()
          ? sink.InterestIn(Op::releasedir_)
          : sink.InterestIn(Op::release_) | sink.InterestIn(Op::write_);
  if (interest == 0) return;
  if ((interest & (EventSink::kCaller | EventSink::kBeforeReply)) != 0) {
    if (traced()) {
      Event& event = recording_->event;
      event.NeedCaller();
      if (event.caller != nullptr) seen.info = *event.caller;
    } else if (const CallerInfo* info = fs_.CallerOf(op_, seen.tid)) {
      seen.info = *info;
    }
  }
  handle.NoteCaller(seen);
}

void OpScope::EndAndRemove(Handle& handle) {
  std::unique_ptr<Handle> removed;
  End(0, 0, [&] {
    removed = fs_.handles().Remove(handle);
    return fuse_reply_err(req_, 0);
  });
  fs_.Dismiss(std::move(removed));
}

void OpScope::Done(int64_t result, int error) {
  Event& event = recording_->event;
  event.SetResult(result, error);
  const uint64_t now_ns = MonotonicNs();
  uint64_t end_ns = now_ns;
  if (Orders()) {
    const uint64_t begin_ns = held_.BeginOf(event.Get(Field::kTime));
    end_ns = std::max(end_ns, begin_ns);
    event.Set(Field::kTime, begin_ns);
    held_.Release(end_ns);
    if (event.Has(Field::kInode)) {
      fs_.change_order().Used(event.Get(Field::kInode), end_ns);
    }
  }
  event.Set(Field::kLatency, end_ns - event.Get(Field::kTime));
  NoteTime(now_ns, result);
}

}  // namespace tracefs
