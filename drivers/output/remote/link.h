// Link: brings the frames of one trace to one receiver, over as many
// connections as it takes (tracefs/net/PROTOCOL.md).
//
// Frames stay in the backlog until the receiver says that they are durable.
// After each break the receiver says what it has, and sending goes on behind
// that: no gap, no duplicate.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "drivers/output/remote/backlog.h"
#include "drivers/output/remote/sender.h"
#include "tracefs/net/wire.h"

namespace tracefs {

struct LinkOptions : SenderOptions {
  // A receiver that was sent something and says nothing for so long is given
  // up, and connected to again.
  std::chrono::nanoseconds timeout = std::chrono::seconds(30);
};

class Link final : SenderProtocol {
 public:
  struct Trace {
    std::string preamble;
    std::unique_ptr<Backlog> backlog;
    // A block was given up because the receiver will never take it. Called
    // without a lock of the link's. Empty: the sender ends in place of that,
    // and the block stays in the backlog, as what is behind it.
    BlockLost lost = nullptr;
    // Called under the lock whenever the backlog has become shorter.
    std::function<void(const Backlog&)> shorter = nullptr;
    // An earlier process may have sent any of it: what the receiver says that
    // it has is believed.
    bool sent_before = false;
  };

  // `dialer` outlives the link and is used by nobody else meanwhile. What was
  // not delivered at the end stays in the backlog.
  Link(LinkOptions options, Dialer& dialer, Trace trace);

  // Starts and ends it. Its lock guards the backlog and all below; whoever adds
  // a frame wakes it. Waits on it are woken whenever frames were delivered or
  // the state of the connection changed.
  Sender& sender() { return sender_; }
  const Sender& sender() const { return sender_; }

  Backlog& backlog() { return *trace_.backlog; }
  const Backlog& backlog() const { return *trace_.backlog; }
  // There is a connection; attempts that failed so far; the last failure.
  bool connected() const { return connected_; }
  uint64_t failures() const { return failures_; }
  const Status& last_failure() const { return last_failure_; }

  // What could not be delivered, once the sender has ended.
  std::unique_ptr<Backlog> TakeBacklog();

 private:
  class Conversation;

  Status Converse(net::Stream& stream) override;
  bool AllSent() const override {
    return trace_.backlog->empty() || (too_large_ && sent_ == 0);
  }
  void NoteFailure(const Status& why) override;
  // HELLO, and the answer to it; the longest frame that the receiver takes.
  Result<uint32_t> Greet(Conversation& talk);
  Status Welcome(const net::Reply& welcome);
  Status Acknowledge(uint64_t next);
  // Drops what the receiver does not take, or ends before it.
  void PassTooLarge(uint32_t max_frame);

  const LinkOptions options_;
  Trace trace_;

  // Guarded by the sender's lock, as the backlog is.
  size_t sent_ = 0;  // frames of the backlog that were sent whole
  // No receiver has more than the blocks below: the number after the highest
  // that was ever sent whole.
  uint64_t sent_end_ = 0;
  bool too_large_ = false;  // the next is, and may not be dropped
  bool connected_ = false;
  bool told_ = false;  // that there is no connection
  uint64_t failures_ = 0;
  Status last_failure_;

  Sender sender_;  // the last: it ends before the others go
};

}  // namespace tracefs
