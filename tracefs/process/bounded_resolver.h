// BoundedResolver: asks who a task is without ever waiting long for /proc.
//
// A task that executes a program holds its exec_update_lock while it closes its
// close-on-exec files, and /proc/TID/stat takes the same lock (since the kernel
// checks access under it). If one of those files is ours, the task waits for
// our answer to FLUSH, and whoever reads its /proc before answering waits for
// the task: for ever. So for such requests another thread reads, and the
// request waits for it no longer than a limit. The reader gets on as soon as
// the answer is out.
#ifndef TRACEFS_PROCESS_BOUNDED_RESOLVER_H_
#define TRACEFS_PROCESS_BOUNDED_RESOLVER_H_

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "tracefs/event/event.h"
#include "tracefs/process/process_table.h"

namespace tracefs {

// Threads: any.
class BoundedResolver {
 public:
  // `table` outlives this. The reading thread begins with the first question.
  explicit BoundedResolver(ProcessTable& table) : table_(table) {}
  // Waits until the reader is done with what it is reading.
  ~BoundedResolver();
  BoundedResolver(const BoundedResolver&) = delete;
  BoundedResolver& operator=(const BoundedResolver&) = delete;

  // Copies what is known of the task. False if it is gone, or if that could
  // not be found out within `limit`.
  bool Resolve(uint32_t tid, std::chrono::milliseconds limit,
               CallerInfo* caller);

 private:
  struct Request {
    uint32_t tid = 0;
    bool done = false;
    bool found = false;
    CallerInfo caller;
  };
  // More wait for the reader only while it is held up; they give up soon.
  static constexpr size_t kMaxQueued = 64;

  void Read();

  ProcessTable& table_;
  std::mutex mu_;
  // Guarded by mu_.
  std::condition_variable asked_;
  std::condition_variable answered_;
  std::deque<std::shared_ptr<Request>> queue_;
  bool stopping_ = false;
  std::thread reader_;  // joined without the lock, by the destructor only
};

}  // namespace tracefs

#endif  // TRACEFS_PROCESS_BOUNDED_RESOLVER_H_
