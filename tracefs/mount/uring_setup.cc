// How libfuse's rings are set up, and how other threads reply through them.
//
// Setting up: libfuse asks for rings whose completions interrupt their thread
// wherever it is. A thread that serves FUSE waits in io_uring_enter(2) anyway,
// and there it can run them itself (DEFER_TASKRUN, which needs to know that
// nobody else submits): 4 % of the time of Postmark.
//
// Replying: only the thread of a ring may put replies into it, by what is said
// above, and libfuse has no way to ask it (its issue 1443). Here others leave
// what is to be called with it and write to an eventfd that the ring polls; the
// thread calls it before it waits again. Where nobody does, that costs a look
// at the completions, which are looked at anyway.
//
// The linker leads libfuse's calls of liburing here (--wrap); there are no
// others in this program.
// Sources: io_uring_setup(2); libfuse, lib/fuse_uring.c.
#include <liburing.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "tracefs/base/event_fd.h"
#include "tracefs/fs/handed_request.h"

// NOLINTBEGIN(bugprone-reserved-identifier): the names are the linker's.
extern "C" {
int __real_io_uring_queue_init_params(unsigned entries, io_uring* ring,
                                      io_uring_params* params);
int __real_io_uring_submit_and_wait(io_uring* ring, unsigned count);
int __real_io_uring_submit(io_uring* ring);
}

namespace tracefs {
namespace {

class RingReplies final : public ReplyThread {
 public:
  explicit RingReplies(io_uring* ring) : ring_(ring) {}

  bool Run(const std::function<void()>& reply) override {
    Job job{&reply};
    std::unique_lock lock(mu_);
    if (closed_) return false;
    jobs_.push_back(&job);
    waiting_.store(true, std::memory_order_release);
    event_.Set();
    done_.wait(lock, [&] { return job.state != Job::kWaits; });
    return job.state == Job::kDone;
  }

  void ServeFor(std::chrono::milliseconds time) override {
    pollfd event = {event_.get(), POLLIN, 0};
    ::poll(&event, 1, static_cast<int>(time.count()));
    ServeWaiting();
  }

  // Calls what others wait for. The ring's thread.
  void ServeWaiting() {
    if (!waiting_.load(std::memory_order_acquire)) return;
    std::vector<Job*> jobs;
    {
      std::lock_guard lock(mu_);
      jobs.swap(jobs_);
      waiting_.store(false, std::memory_order_relaxed);
      event_.Clear();
    }
    serving_ = true;
    for (const Job* job : jobs) (*job->reply)();
    serving_ = false;
    {
      std::lock_guard lock(mu_);
      for (Job* job : jobs) job->state = Job::kDone;
    }
    done_.notify_all();
  }

  // What is called now prepares replies; all go out together afterwards.
  bool serving() const { return serving_; }

  // Has the ring tell when there is something to call.
  void Arm() {
    if (armed_ || !event_) return;
    io_uring_sqe* const sqe = io_uring_get_sqe(ring_);
    if (sqe == nullptr) return;
    io_uring_prep_poll_add(sqe, event_.get(), POLLIN);
    io_uring_sqe_set_data(sqe, this);
    armed_ = true;
  }

  // libfuse takes each completion for a request of its own, but for those that
  // say ENOTCONN.
  void HideOwnCompletion() {
    unsigned head;
    io_uring_cqe* cqe;
    io_uring_for_each_cqe(ring_, head, cqe) {
      if (io_uring_cqe_get_data(cqe) != this) continue;
      cqe->res = -ENOTCONN;
      armed_ = false;
    }
  }

  // The ring is about to go: whoever waits, waits in vain.
  void Close() {
    {
      std::lock_guard lock(mu_);
      closed_ = true;
      for (Job* job : jobs_) job->state = Job::kGone;
      jobs_.clear();
    }
    done_.notify_all();
  }

 private:
  struct Job {
    enum State { kWaits, kDone, kGone };
    const std::function<void()>* reply;
    State state = kWaits;
  };

  io_uring* const ring_;
  const EventFd event_;
  bool armed_ = false;    // of the ring's thread
  bool serving_ = false;  // the same
  std::atomic<bool> waiting_{false};
  std::mutex mu_;
  std::condition_variable done_;
  std::vector<Job*> jobs_;  // guarded by mu_
  bool closed_ = false;     // guarded by mu_
};

// Ends with its thread, which libfuse joins before it frees the ring.
struct OfThread {
  ~OfThread() {
    if (replies) replies->Close();
  }
  std::shared_ptr<RingReplies> replies;
};
thread_local OfThread of_thread;

}  // namespace
}  // namespace tracefs

extern "C" {

int __wrap_io_uring_queue_init_params(unsigned entries, io_uring* ring,
                                      io_uring_params* params) {
  // A thread makes the ring that it serves.
  tracefs::of_thread.replies = std::make_shared<tracefs::RingReplies>(ring);
  tracefs::RequestSource::OfThread().replies = tracefs::of_thread.replies;
  // One entry more, for what wakes the thread to reply for others.
  ++entries;
  params->cq_entries += 2;
  io_uring_params deferred = *params;
  deferred.flags |= IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
  const int result =
      __real_io_uring_queue_init_params(entries, ring, &deferred);
  if (result == 0) {
    *params = deferred;
    return 0;
  }
  // A kernel without it (it came with Linux 6.1) says EINVAL.
  return __real_io_uring_queue_init_params(entries, ring, params);
}

int __wrap_io_uring_submit_and_wait(io_uring* ring, unsigned count) {
  tracefs::RingReplies* const replies = tracefs::of_thread.replies.get();
  if (replies == nullptr) return __real_io_uring_submit_and_wait(ring, count);
  // It serves now, and ends by itself when libfuse wakes it: no call of a
  // handler, and no destructor of this thread, is to be where it is cancelled.
  ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
  replies->ServeWaiting();
  replies->Arm();
  const int result = __real_io_uring_submit_and_wait(ring, count);
  replies->HideOwnCompletion();
  return result;
}

int __wrap_io_uring_submit(io_uring* ring) {
  const tracefs::RingReplies* const replies = tracefs::of_thread.replies.get();
  if (replies != nullptr && replies->serving()) return 0;
  return __real_io_uring_submit(ring);
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier)
