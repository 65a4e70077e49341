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

  // Has the thread call `reply`, soon, and waits until it has. False if it
  // never will: the ring is gone, and its requests with it. Any other thread.
  virtual bool Run(const std::function<void()>& reply) = 0;

  // Calls what others have asked for until something was, or until `time` is
  // over. The thread itself, in the midst of a request.
  virtual void ServeFor(std::chrono::milliseconds time) = 0;
};

}  // namespace tracefs
