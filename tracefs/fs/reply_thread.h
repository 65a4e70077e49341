// ReplyThread: the only thread that may send the replies of some requests.
//
// Over io_uring a reply goes into the ring that the request came from, and only
// that ring's thread may put it there (tracefs/mount/uring_setup.cc).
#pragma once

#include <chrono>
#include <functional>

namespace tracefs {

class ReplyThread {
 public:
  virtual ~ReplyThread() = default;

  // Calls `reply`, which calls one fuse_reply_…, on this thread: the reply is
  // built here and soon sent by the thread of the ring. Returns what `reply`
  // returns; -ENOENT, without calling it, if the ring and its requests are
  // gone. Any thread but that of the ring.
  virtual int Run(const std::function<int()>& reply) = 0;

  // Sends what others have left, until something was sent, Wake was called or
  // `time` is over. The thread itself, in the midst of a request.
  virtual void ServeFor(std::chrono::milliseconds time) = 0;

  // Ends ServeFor, or the next one. Any thread.
  virtual void Wake() = 0;
};

}  // namespace tracefs
