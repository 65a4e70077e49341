// How libfuse's rings are set up, and how other threads reply through them.
//
// Setting up: libfuse asks for rings whose completions interrupt their thread
// wherever it is. A thread that serves FUSE waits in io_uring_enter(2) anyway,
// and there it can run them itself (DEFER_TASKRUN, which requires a single
// submitter): 4 % of the time of Postmark.
//
// Replying: for the reason above, only the thread of a ring may put replies
// into it, and libfuse has no way to ask it (its issue 1443). Other threads
// build their replies in the memory of their requests, which is theirs until
// they are answered, leave them with the thread and write to an eventfd that
// the ring reads; the thread sends them before it waits again. Nothing waits
// for that. If there are none, it costs a look at the completions, which are
// examined anyway.
//
// Restricting: a ring does what FUSE takes and nothing else (ring_limits.h).
//
// The linker redirects libfuse's calls of liburing here (--wrap); there are no
// others in this program.
// Sources: io_uring_setup(2); libfuse, lib/fuse_uring.c, lib/fuse_lowlevel.c.
#include <liburing.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "tracefs/base/unique_fd.h"
#include "tracefs/daemon/ring_limits.h"
#include "tracefs/fs/fuse_api.h"
#include "tracefs/fs/handed_request.h"

// NOLINTBEGIN(bugprone-reserved-identifier): the names are the linker's.
extern "C" {
int __real_io_uring_queue_init_params(unsigned entries, io_uring* ring,
                                      io_uring_params* params);
int __real_io_uring_submit_and_wait(io_uring* ring, unsigned count);
int __real_io_uring_submit(io_uring* ring);
int __real_send_reply_uring(fuse_req_t req, int error, const void* data,
                            size_t size);
int __real_fuse_send_msg_uring(fuse_req_t req, iovec* parts, int count);
}

namespace tracefs {
namespace {

class RingReplies final : public ReplyThread {
 public:
  explicit RingReplies(io_uring* ring) : ring_(ring) {}

  int Run(const std::function<int()>& reply) override {
    const Inside inside(*this);
    if (closed_.load()) return -ENOENT;
    Outgoing outgoing;
    Outgoing::OfThread() = &outgoing;
    const int result = reply();
    Outgoing::OfThread() = nullptr;
    // Only now: libfuse has put the request down.
    if (outgoing.reply.req != nullptr) Leave(outgoing.reply);
    return result;
  }

  void ServeFor(std::chrono::milliseconds time) override {
    // The ring may have read the event already, and what was left since is not
    // told again.
    if (!waiting_.load(std::memory_order_acquire)) {
      pollfd event = {event_.get(), POLLIN, 0};
      if (::poll(&event, 1, static_cast<int>(time.count())) > 0) {
        uint64_t count;
        const iovec to = {&count, sizeof count};
        (void)!::preadv2(event_.get(), &to, 1, -1, RWF_NOWAIT);
      }
    }
    ServeWaiting();
    // Their callers must not also wait for the end of this request.
    __real_io_uring_submit(ring_);
  }

  void Wake() override { WriteEvent(); }

  // Sends what others have left. The ring's thread.
  void ServeWaiting() {
    if (!waiting_.load(std::memory_order_acquire)) return;
    {
      std::lock_guard lock(mu_);
      sending_.swap(left_);
      waiting_.store(false, std::memory_order_relaxed);
    }
    serving_ = true;
    for (const Reply& reply : sending_) Send(reply);
    serving_ = false;
    sending_.clear();
  }

  // Puts replies into the ring now; all go out together afterwards.
  bool serving() const { return serving_; }

  // Makes the ring report when there is something to send.
  void Arm() {
    if (armed_ || !event_) return;
    io_uring_sqe* const sqe = io_uring_get_sqe(ring_);
    if (sqe == nullptr) return;
    io_uring_prep_read(sqe, event_.get(), &events_, sizeof events_, 0);
    io_uring_sqe_set_data(sqe, this);
    armed_ = true;
  }

  // libfuse takes each completion for one of its requests, except those that
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

  // The ring is about to go, and the memory of its requests: waits for the
  // users of that memory.
  void Close() {
    closed_.store(true);
    for (int inside = inside_.load(); inside != 0; inside = inside_.load()) {
      inside_.wait(inside);
    }
  }

  // A reply, whose data lie in the memory of its request.
  struct Reply {
    fuse_req_t req = nullptr;
    int error = 0;
    size_t size = 0;
    bool is_message = false;  // by fuse_send_msg_uring
  };
  // Where this thread builds a reply for a ring; null: it does not.
  struct Outgoing {
    Reply reply;
    static Outgoing*& OfThread() {
      thread_local constinit Outgoing* outgoing = nullptr;
      return outgoing;
    }
  };

 private:
  // Counts who may use the memory of the ring's requests.
  class Inside {
   public:
    explicit Inside(RingReplies& replies) : replies_(replies) {
      replies_.inside_.fetch_add(1);
    }
    ~Inside() {
      if (replies_.inside_.fetch_sub(1) == 1 && replies_.closed_.load()) {
        replies_.inside_.notify_all();
      }
    }
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;

   private:
    RingReplies& replies_;
  };

  void Leave(const Reply& reply) {
    {
      std::lock_guard lock(mu_);
      left_.push_back(reply);
      if (waiting_.exchange(true, std::memory_order_acq_rel)) return;
    }
    WriteEvent();
  }

  // The ring reads it, or ServeFor does.
  void WriteEvent() {
    const uint64_t one = 1;
    (void)!::write(event_.get(), &one, sizeof one);
  }

  static void Send(const Reply& reply) {
    char* payload = nullptr;
    size_t capacity = 0;
    fuse_req_get_payload(reply.req, &payload, &capacity, nullptr);
    if (!reply.is_message) {
      __real_send_reply_uring(reply.req, reply.error, payload, reply.size);
      return;
    }
    // The first part is a header, which is rebuilt.
    std::array<iovec, 2> parts = {{{nullptr, 0}, {payload, reply.size}}};
    __real_fuse_send_msg_uring(reply.req, parts.data(), 2);
  }

  io_uring* const ring_;
  // Not EventFd: the ring must wait for it instead of getting an error.
  const UniqueFd event_{::eventfd(0, EFD_CLOEXEC)};
  uint64_t events_ = 0;         // where the ring reads it to
  bool armed_ = false;          // of the ring's thread
  bool serving_ = false;        // the same
  std::vector<Reply> sending_;  // the same
  std::atomic<bool> waiting_{false};
  std::atomic<bool> closed_{false};
  std::atomic<int> inside_{0};
  std::mutex mu_;
  std::vector<Reply> left_;  // guarded by mu_
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
  // One more entry, for the event that wakes the thread to reply for others.
  ++entries;
  params->cq_entries += 2;
  params->flags |= IORING_SETUP_R_DISABLED;
  io_uring_params deferred = *params;
  deferred.flags |= IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
  int result = __real_io_uring_queue_init_params(entries, ring, &deferred);
  if (result == 0) {
    *params = deferred;
  } else {
    // A kernel without it (it came with Linux 6.1) says EINVAL.
    result = __real_io_uring_queue_init_params(entries, ring, params);
  }
  if (result != 0) return result;
  result = -tracefs::LimitRing(ring->ring_fd);
  if (result != 0) io_uring_queue_exit(ring);
  return result;
}

int __wrap_io_uring_submit_and_wait(io_uring* ring, unsigned count) {
  tracefs::RingReplies* const replies = tracefs::of_thread.replies.get();
  if (replies == nullptr) return __real_io_uring_submit_and_wait(ring, count);
  // It serves now, and ends by itself when libfuse wakes it: it must not be
  // cancelled inside a handler's call or a destructor of this thread.
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

int __wrap_send_reply_uring(fuse_req_t req, int error, const void* data,
                            size_t size) {
  auto* const outgoing = tracefs::RingReplies::Outgoing::OfThread();
  if (outgoing == nullptr) {
    return __real_send_reply_uring(req, error, data, size);
  }
  char* payload = nullptr;
  size_t capacity = 0;
  fuse_req_get_payload(req, &payload, &capacity, nullptr);
  if (size > capacity) {
    error = -EINVAL;
    size = 0;
  }
  if (size != 0 && data != payload) std::memcpy(payload, data, size);
  outgoing->reply = {.req = req, .error = error, .size = size};
  return 0;
}

int __wrap_fuse_send_msg_uring(fuse_req_t req, iovec* parts, int count) {
  auto* const outgoing = tracefs::RingReplies::Outgoing::OfThread();
  if (outgoing == nullptr) return __real_fuse_send_msg_uring(req, parts, count);
  char* payload = nullptr;
  size_t capacity = 0;
  fuse_req_get_payload(req, &payload, &capacity, nullptr);
  size_t size = 0;
  for (int i = 1; i < count; ++i) {  // 0 is a header, which is built here
    if (parts[i].iov_len > capacity - size) break;  // the kernel refuses it
    std::memcpy(payload + size, parts[i].iov_base, parts[i].iov_len);
    size += parts[i].iov_len;
  }
  outgoing->reply = {.req = req, .size = size, .is_message = true};
  return 0;
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier)
