// HandedRequest: a request that goes on in the side pool (side_pool.h).
//
// Its handler runs there from the beginning, with copies of its arguments; what
// has already happened is not repeated (OpScope). Replies go out from the
// thread that may send them. Once the request has been given up, libfuse no
// longer knows it and nothing here uses it: handlers ask ContextOf(req) for
// their caller.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "tracefs/event/op.h"
#include "tracefs/fs/fuse_api.h"
#include "tracefs/fs/operands.h"
#include "tracefs/fs/reply_thread.h"
#include "tracefs/fs/side_pool.h"
#include "tracefs/pipeline/event_sink.h"

namespace tracefs {

class FileSystem;
class Inode;
struct Handle;

// Where the request that a thread serves came from. Set by the code that reads
// requests, where possible.
struct RequestSource {
  uint64_t unique = 0;  // its number; 0: not known
  // Its replies must be sent by that thread; null: by any.
  std::shared_ptr<ReplyThread> replies;

  static RequestSource& OfThread() {
    thread_local RequestSource source;
    return source;
  }
};

class HandedRequest final : public SideTask {
 public:
  // `about`: what is known of it, if it is traced, else null; it is known to go
  // on until this ends. `bytes`: what the handler holds.
  HandedRequest(fuse_req_t req, FileSystem& fs, Op op, const Event* about,
                bool before_told, size_t bytes, std::function<void()> handler);

  // The one that this thread runs; null on any other thread.
  static HandedRequest* Current() { return current_; }

  void Run() override;
  bool CallerIsDying() const override;
  bool GiveUp() override;
  void EndUnbegun() override;
  void Forsake() override { answered_.store(true); }

  // Calls `reply` where it may be called, unless the request was answered; what
  // it returns, or -ENOENT.
  int Answer(const std::function<int()>& reply);

  // What the handler uses, kept alive if the request is given up: the kernel
  // then forgets and releases what it likes.
  void Pin(Inode& inode);
  void Pin(const Handle& handle);

  FileSystem& fs() const { return fs_; }
  const fuse_ctx& context() const { return context_; }
  uint64_t begin_ns() const { return begin_ns_; }
  bool before_told() const { return before_told_; }

 private:
  static thread_local constinit HandedRequest* current_;

  const fuse_req_t req_;
  FileSystem& fs_;
  const Op op_;
  const fuse_ctx context_;
  const uint64_t begin_ns_;
  std::optional<Operands> operands_;  // where it is traced
  std::optional<Parked> parked_;
  const bool before_told_;
  const std::function<void()> handler_;
  const std::shared_ptr<ReplyThread> replies_;
  std::atomic<bool> answered_{false};
  // The handler has what it uses: it may be given up.
  std::atomic<bool> pinned_{false};
  std::vector<Inode*> inodes_;
  std::vector<const Handle*> handles_;
};

// Called when the caller of a request has been interrupted; may be null. Set by
// the mount; there is one per process.
class Interruptible {
 public:
  virtual ~Interruptible() = default;
  // False: libfuse must look at it, too.
  virtual bool Interrupt(uint64_t unique) = 0;
};
Interruptible*& InterruptHandler();

// The caller of a request.
inline const fuse_ctx* ContextOf(fuse_req_t req) {
  const HandedRequest* handed = HandedRequest::Current();
  return handed == nullptr ? fuse_req_ctx(req) : &handed->context();
}

}  // namespace tracefs
