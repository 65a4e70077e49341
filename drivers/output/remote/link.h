// Link: brings the frames of one trace to one receiver, over as many
// connections as it takes (tracefs/net/PROTOCOL.md).
//
// Frames stay in the backlog until the receiver says that they are durable.
// After each break the receiver says what it has, and sending goes on behind
// that: no gap, no duplicate.
#ifndef DRIVERS_OUTPUT_REMOTE_LINK_H_
#define DRIVERS_OUTPUT_REMOTE_LINK_H_

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "drivers/output/remote/backlog.h"
#include "drivers/output/remote/dialer.h"
#include "tracefs/net/stream.h"
#include "tracefs/net/tls.h"
#include "tracefs/net/wire.h"

namespace tracefs {

struct LinkOptions {
  net::Address address;
  net::TlsContext* tls = nullptr;  // outlives the link; null: plain
  std::string tls_name;            // what the receiver's certificate must have
  // A receiver that was sent something and says nothing for so long is given
  // up, and connected to anew.
  std::chrono::nanoseconds timeout = std::chrono::seconds(30);
  // The longest pause between two attempts; the first one is a hundredth.
  std::chrono::nanoseconds retry = std::chrono::seconds(10);
};

class Link {
 public:
  struct Trace {
    std::string preamble;
    std::unique_ptr<Backlog> backlog;
    // A block was given up because the receiver will never take it. May be
    // empty. Called without a lock of the link's.
    BlockLost lost = nullptr;
    // Called under the lock whenever the backlog has become shorter.
    std::function<void(const Backlog&)> shorter = nullptr;
    // An earlier process may have sent any of it: what the receiver says that
    // it has is believed.
    bool sent_before = false;
  };

  // `dialer` outlives the link and is used by nobody else meanwhile.
  Link(LinkOptions options, Dialer& dialer, Trace trace);
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  // Ends at once: what was not delivered stays in the backlog.
  ~Link();

  // Starts the thread that sends. Without it nothing is sent.
  void Start();
  // The thread ends when all is delivered.
  void Finish();
  // It ends now.
  void Abort();
  // True if it has ended before `until`; then it is gone.
  bool AwaitEnd(std::chrono::steady_clock::time_point until);

  // What could not be delivered, once the thread has ended.
  std::unique_ptr<Backlog> TakeBacklog();

  // --- For who adds frames. The lock is held while they use the backlog.
  std::unique_lock<std::mutex> Lock() const { return std::unique_lock(mu_); }
  Backlog& backlog() { return *trace_.backlog; }
  const Backlog& backlog() const { return *trace_.backlog; }
  // After a frame was added.
  void Wake();
  // Waits, with the lock held, until `done` or the time is over; woken whenever
  // frames were delivered or the state of the connection changed.
  template <typename Done>
  bool WaitFor(std::unique_lock<std::mutex>& lock,
               std::chrono::nanoseconds patience, Done done) {
    return moved_.wait_for(lock, patience, done);
  }
  // With the lock held: there is a connection; attempts that failed so far;
  // the last failure.
  bool connected() const { return connected_; }
  uint64_t failures() const { return failures_; }
  const Status& last_failure() const { return last_failure_; }

 private:
  using Clock = std::chrono::steady_clock;
  class Conversation;

  void Run();
  bool Done() const;
  // One connection from beginning to end.
  Status Converse();
  // True if it was cut short by Abort.
  bool Pause(std::chrono::nanoseconds duration) const;
  std::chrono::nanoseconds NextPause();
  void NoteFailure(const Status& why);
  // The receiver's answer to HELLO.
  Status Welcome(const net::Reply& welcome);
  Status Acknowledge(uint64_t next);
  // Drops what the receiver does not take.
  void DropTooLarge(uint32_t max_frame);

  const LinkOptions options_;
  Dialer& dialer_;
  Trace trace_;
  UniqueFd wake_;  // eventfd: there is more to send, or to end
  UniqueFd stop_;  // eventfd: end now

  mutable std::mutex mu_;  // guards all below, and the backlog
  mutable std::condition_variable moved_;
  size_t sent_ = 0;  // frames of the backlog that were sent whole
  // No receiver has more than the blocks below: the number after the highest
  // that was ever sent whole.
  uint64_t sent_end_ = 0;
  bool connected_ = false;
  bool told_ = false;  // that there is no connection
  uint64_t failures_ = 0;
  Status last_failure_;
  bool finishing_ = false;
  bool aborting_ = false;
  bool ended_ = false;

  // Of the thread.
  uint64_t attempt_ = 0;  // since something was last delivered
  uint64_t random_;
  std::thread thread_;
};

}  // namespace tracefs

#endif  // DRIVERS_OUTPUT_REMOTE_LINK_H_
