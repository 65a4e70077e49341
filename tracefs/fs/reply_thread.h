// ReplyThread: the only thread that may send the replies of some requests.
//
// Over io_uring a reply goes into the ring that the request came by, and only
// the thread of that ring may put it there (tracefs/mount/uring_setup.cc).
#pragma once

#include <chrono>
#include <functional>

namespace tracefs {

class ReplyThread {
 public:
  virtual ~ReplyThread() = default;

  // Calls `reply`, which calls one fuse_reply_…, on this thread: what it sends
  // is put together here and sent by the thread of the ring, soon. What `reply`
  // returns; -ENOENT, without calling it, if the ring is gone, and its requests
  // with it. Any thread but that of the ring.
  virtual int Run(const std::function<int()>& reply) = 0;

  // Sends what others have left until something was, or until `time` is over.
  // The thread itself, in the midst of a request.
  virtual void ServeFor(std::chrono::milliseconds time) = 0;
};

}  // namespace tracefs
