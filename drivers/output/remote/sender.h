// Sender: a thread that keeps a connection to one receiver: it dials, shakes
// hands, lets a protocol talk and, when that has failed, waits a while and
// dials again.
#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "drivers/output/remote/dialer.h"
#include "tracefs/base/event_fd.h"
#include "tracefs/net/address.h"
#include "tracefs/net/stream.h"
#include "tracefs/net/tls.h"

namespace tracefs {

struct SenderOptions {
  net::Address address;
  std::string name = {};  // of what is no address; for messages
  std::shared_ptr<net::TlsContext> tls = {};  // null: not TLS
  std::string tls_name = {};  // what the receiver's certificate must have
  // Pauses between attempts double, up to this one.
  std::chrono::nanoseconds retry = std::chrono::seconds(10);
  std::chrono::nanoseconds first_pause{0};  // 0: a hundredth of the longest
  // Cut short by chance: many senders do not come back in the same moment.
  bool spread = true;

  std::string Name() const { return name.empty() ? address.Text() : name; }
};

// What is said over the connections.
class SenderProtocol {
 public:
  // Talks over a new connection until it fails, or the sender is Done. Called
  // by the sender's thread.
  virtual Status Converse(net::Stream& stream) = 0;
  // Nothing waits to be sent. Called with the sender's lock held.
  virtual bool AllSent() const = 0;
  // A connection has failed, or an attempt to make one. Likewise.
  virtual void NoteFailure(const Status& why) = 0;

 protected:
  ~SenderProtocol() = default;
};

class Sender {
 public:
  using Clock = std::chrono::steady_clock;

  // All outlive the sender; nobody else uses the dialer meanwhile.
  Sender(const SenderOptions& options, Dialer& dialer,
         SenderProtocol& protocol);
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;
  // Ends at once.
  ~Sender();

  // Starts the thread; `name`: StartThread. Without it nothing is sent.
  Status Start(const char* name);
  // The thread ends when all is sent.
  void Finish();
  // True if it has ended before `until`; then it is gone.
  bool AwaitEnd(Clock::time_point until);
  // The thread ends when all is sent or, without that, after `patience`.
  void EndWithin(std::chrono::nanoseconds patience);

  // --- For who has something to send. The lock guards what the protocol has
  // to send, too.
  std::unique_lock<std::mutex> Lock() const { return std::unique_lock(mu_); }
  // There is more to send.
  void Wake() const { wake_.Set(); }
  // Waits, with the lock held, until `done` or the time is over; woken by
  // NotifyAll, and by each failure.
  template <typename Done>
  bool WaitFor(std::unique_lock<std::mutex>& lock,
               std::chrono::nanoseconds patience, Done done) {
    return moved_.wait_for(lock, patience, done);
  }

  // --- For the protocol.
  void NotifyAll() { moved_.notify_all(); }
  // With the lock held: it is time to end the connection.
  bool Done() const { return aborting_ || (finishing_ && protocol_.AllSent()); }
  // In Converse: something has come through; the next pause is the first.
  void ResetPause() { attempt_ = 0; }
  // In Converse: waits until the stream can do what is asked or, with
  // `or_wake`, there is more to send. kSystem ETIMEDOUT after `until`,
  // ECANCELED if the thread is to end now.
  Status Await(const net::Stream& stream, bool read, bool write,
               Clock::time_point until, bool or_wake) const;

 private:
  void Run();
  void Abort();
  Status Attempt();
  void Pause(std::chrono::nanoseconds duration) const;
  std::chrono::nanoseconds NextPause();

  const SenderOptions& options_;
  Dialer& dialer_;
  SenderProtocol& protocol_;
  EventFd wake_;  // there is more to send, or to end
  EventFd stop_;  // end now

  mutable std::mutex mu_;
  std::condition_variable moved_;
  // Guarded by mu_.
  bool finishing_ = false;
  bool aborting_ = false;
  bool ended_ = false;

  // Used by the thread.
  uint64_t attempt_ = 0;  // since ResetPause
  uint64_t random_;
  std::thread thread_;
};

}  // namespace tracefs
