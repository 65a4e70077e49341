// OpScope: one request, from the first line of its handler to after its reply.
//
// If the operation is not recorded, it costs one load. Otherwise it holds the
// recording and keeps copies of what the reply may overwrite (over io_uring,
// reply and arguments share memory).
//
//   void FsUnlink(fuse_req_t req, fuse_ino_t parent, const char* name) {
//     OpScope op(req, Op::unlink_);
//     Inode& dir = op.fs().InodeOf(parent);
//     op.In(dir, name);
//     op.Begin();
//     op.ReplyError(::unlinkat(op.fs().FdOf(dir).get(), name, 0) == 0 ? 0 :
//     errno);
//   }
#pragma once

#include <cerrno>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

#include "tracefs/base/clock.h"
#include "tracefs/base/tsan.h"
#include "tracefs/fs/change_order.h"
#include "tracefs/fs/file_system.h"
#include "tracefs/fs/handed_request.h"
#include "tracefs/fs/preemption.h"
#include "tracefs/pipeline/event_sink.h"

namespace tracefs {

class OpScope {
 public:
  OpScope(fuse_req_t req, Op op)
      : req_(req), op_(op), fs_(FileSystem::Of(req)) {
    fs_.EnterWorker(req);
    if (fs_.waits().Of(op).suspects()) [[unlikely]] {
      computed_ns_ = ComputedNs();
    }
    interest_ = fs_.sink().InterestIn(op);
    if ((interest_ & EventSink::kRecord) != 0) {
      Record(interest_, *ContextOf(req));
    } else {
      begin_ns_ = MonotonicNs();
    }
  }
  // An operation without a request: a release when the mount ends.
  OpScope(FileSystem& fs, Op op);
  OpScope(const OpScope&) = delete;
  OpScope& operator=(const OpScope&) = delete;

  fuse_req_t req() const { return req_; }
  FileSystem& fs() const { return fs_; }
  bool traced() const { return recording_.has_value(); }
  // When it began on this thread.
  uint64_t begin_ns() const { return begin_ns_; }

  // --- What the operation is about. Nothing happens where it is not traced.
  void Set(Field field, uint64_t value) {
    if (traced()) recording_->event.Set(field, value);
  }
  void About(Inode& inode);
  // The operand: `name` in directory `dir`.
  void In(Inode& dir, std::string_view name);
  // The operand is `inode` by its last known name, whatever names it has when
  // the operation ends: for operations that give it one, or that take long.
  void ByItsName(const Inode& inode);
  // The second operand of rename and link.
  void Into(Inode& dir, std::string_view name);
  // The second file of a copy, and its handle.
  void Onto(const Handle& destination);
  void Through(const Handle& handle);
  void Target(std::string_view target);
  void XattrName(std::string_view name);
  void Data(ByteSpan data) {
    if (KeepsData()) recording_->event.data = data;
  }
  // All of that, as it was known when the request was handed over.
  void Restore(const Operands& operands) {
    if (traced()) operands.Into(recording_->event);
  }
  void Attributes(const struct stat& st) {
    if (traced()) recording_->event.SetAttributes(st);
  }
  // Requests that come with no caller: who used the handle last.
  void InferCaller(const Handle& handle);
  // Notes this caller with the handle, for requests that come with none.
  void RememberCaller(Handle& handle);

  // A read or write that goes to the disk each time (WaitRules).
  void ToDisk() { to_disk_ = true; }

  // --- What it reads or changes below, declared before the calls that do so:
  // from then on until its end is known, conflicting operations wait, so that
  // recorded times show which was first. Only where some tracer wants that, and
  // no call below can hang. The names in a directory before any file; one call
  // for names, one for files.
  void LooksAtNames(const Inode& dir) {
    if (Orders()) held_.Names(fs_.change_order(), dir.number(), kLook);
  }
  void ChangesNames(const Inode& dir) {
    if (Orders()) held_.Names(fs_.change_order(), dir.number(), kChange);
  }
  void ChangesNames(const Inode& dir, const Inode& other) {
    if (Orders()) {
      held_.Names(fs_.change_order(), dir.number(), other.number());
    }
  }
  void LooksAtFile(const Inode& inode) {
    if (Orders()) held_.File(fs_.change_order(), inode.number(), kLook);
  }
  void ChangesFile(uint64_t inode) {
    if (Orders()) held_.File(fs_.change_order(), inode, kChange);
  }
  // `looked` at and the other one changed; or both changed.
  void LooksAndChanges(const Inode& looked, const Inode& changed) {
    if (Orders()) {
      held_.Files(fs_.change_order(), looked.number(), kLook, changed.number());
    }
  }
  void ChangesFiles(uint64_t inode, uint64_t other) {
    if (Orders()) held_.Files(fs_.change_order(), inode, kChange, other);
  }
  // It has made that file, which may have the reused number of another.
  void MakesFile(const Inode& inode) {
    if (Orders()) held_.Makes(fs_.change_order(), inode.number());
  }
  // It is about to wait for another process, and must not hold up others.
  void GivesUpItsTurn() { held_.Release(0); }
  // Where what it destroys is kept (keep_before.h); null: it is not.
  const Keeping* Keeps() const {
    return Wants(EventSink::kKeep) ? fs_.keeping() : nullptr;
  }
  // What is known of it so far. Only where it is traced.
  const Event& event() const { return recording_->event; }
  // Whether some tracer keeps the bytes that are moved.
  bool KeepsData() const { return Wants(EventSink::kData); }
  // Whether some tracer records where it lies; then, of a release or fsync, the
  // writes before it note themselves.
  bool WantsExtents() const { return Wants(EventSink::kExtents); }
  bool NotesWrites() const {
    return (interest_ & EventSink::kNotesWrites) != 0;
  }
  void Lies(ExtentSource& extents) {
    if (traced()) recording_->event.extents = &extents;
  }
  bool Orders() const {
    return Wants(EventSink::kOrder) && !fs_.may_hang_below();
  }

  // All arguments are there; the operation runs now.
  void Begin() {
    if (Wants(EventSink::kBefore)) TellBefore();
  }

  // A call below would have to wait for another process: `handler`, which holds
  // copies of the arguments, starts over on a thread that may wait. `told`:
  // Begin() was called. False if that cannot be done here, and the call must be
  // made. If true, neither this object nor the request is used any more: it
  // goes on elsewhere, or was refused because too many of this user's do; but
  // if it can be made here after all, it is not refused. `bytes`: what the
  // handler holds of its data.
  enum class IfFull : uint8_t { kRefuse, kHere };
  bool HandOver(std::function<void()> handler, bool told = true,
                IfFull if_full = IfFull::kRefuse, size_t bytes = 0);
  // The same for a call that only may have to wait: made here if it cannot be
  // handed over.
  bool HandOverOrMake(std::function<void()> handler, bool told = true,
                      size_t bytes = 0) {
    return HandOver(std::move(handler), told,
                    fs_.may_hang_below() ? IfFull::kRefuse : IfFull::kHere,
                    bytes);
  }

  // Makes a change below by `call`, which returns an errno or 0, and which a
  // later daemon must not make twice. `look` says what is there that it makes
  // another: which file has the name, say. Where that has changed since a dead
  // daemon was about to call, this one does not. Nothing else can have changed
  // it through this mount: the kernel holds directory or file until it has the
  // answer.
  template <typename Look, typename Call>
  int Once(survive::Change change, Look&& look, Call&& call) {
    return static_cast<int>(survive::Once([&](bool again) -> int64_t {
      return survive::WasMade(again, change, look) ? 0 : call();
    }));
  }

  // The handler ends, the operation goes on: some thread ends it later. The
  // object is then not used by this thread any more, but for a ReplyError in
  // its stead.
  void Park() {
    if (survive::Area* const area = fs_.area()) {
      parked_as_ = RequestSource::OfThread().unique;
      area->Park();
    }
    if (traced()) recording_->Park();
  }

  // --- The end: records and replies. `reply` calls one fuse_reply_… and
  // returns what that returned.
  template <typename Reply>
  int End(int64_t result, int error, Reply&& reply) {
    if (handed_ != nullptr) [[unlikely]] {
      return EndHere(result, error, [&] { return handed_->Answer(reply); });
    }
    return EndHere(result, error, reply);
  }
  // Of a RELEASE: the handle is there until it is recorded. If this daemon is
  // killed before, the next one records it.
  void EndAndRemove(Handle& handle);
  void ReplyError(int error) {
    // The backing file could not be opened again.
    if (error == EBADF) error = LostFdError();
    // Another thread may end what was parked, in the middle of its own.
    const survive::Area::Detour detour(fs_.area(), parked_as_);
    End(0, error, [&] { return fuse_reply_err(req_, error); });
  }

 private:
  template <typename Reply>
  int EndHere(int64_t result, int error, Reply&& reply) {
    TsanRelease(&fs_);
    if (!traced()) {
      NoteTime(MonotonicNs(), result);
      return reply();
    }
    Done(result, error);
    return recording_->End(reply);
  }
  // The name that it was opened by, if another one was looked up since.
  bool NameOf(const Handle& handle, NodeLink* link) const;
  // The operand is the file of that name.
  void ByName(const NodeLink& link);
  // For the rule about what is handed over.
  void NoteTime(uint64_t now_ns, int64_t result) {
    WaitRule& rule = fs_.waits().Of(op_, to_disk_);
    uint64_t took_ns = now_ns - begin_ns_;
    // If the processor was lost meanwhile, the time says nothing about the
    // store.
    if (took_ns >= WaitRule::WaitNs(0)) [[unlikely]] {
      if (LostProcessorSinceAsked()) return;
      if (computed_ns_ != 0) took_ns = NotComputed(took_ns, computed_ns_);
    }
    const uint64_t bytes = result > 0 ? static_cast<uint64_t>(result) : 0;
    if (handed_ == nullptr) {
      rule.NoteHere(now_ns, took_ns, bytes);
    } else {
      rule.NoteAside(now_ns, took_ns, bytes);
    }
  }
  bool Wants(EventSink::Interest what) const {
    return traced() && recording_->Wants(what);
  }
  void Record(uint32_t interest, const fuse_ctx& caller);
  void TellBefore();
  void Done(int64_t result, int error);
  std::string_view Keep(NameBuffer& buffer, std::string_view name);

  const fuse_req_t req_;
  const Op op_;
  // Its own, not that of the thread that ends it: what was parked may be ended
  // by another request.
  HandedRequest* const handed_ = HandedRequest::Current();
  uint32_t interest_ = 0;
  static constexpr auto kLook = ChangeOrder::Use::kLook;
  static constexpr auto kChange = ChangeOrder::Use::kChange;
  bool to_disk_ = false;
  uint64_t parked_as_ = 0;  // its number, where a later daemon may end it
  FileSystem& fs_;
  // When it began on this thread; it may have waited for that.
  uint64_t begin_ns_;
  uint64_t computed_ns_ = 0;            // by then; 0: nobody asked
  std::optional<Recording> recording_;  // where it is traced
  ChangeOrder::Held held_;
  NameBuffer name_;  // uninitialised until used
  NameBuffer new_name_;
};

}  // namespace tracefs
