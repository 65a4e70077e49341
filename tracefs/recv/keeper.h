// Keeper: what a receiver does with the traces that come in. Clients are known
// to it by numbers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tracefs/base/bytes.h"
#include "tracefs/base/status.h"
#include "tracefs/net/wire.h"

namespace tracefs {

// All calls come from one thread, and but for Finish none waits for a disk's
// sync or for a reader.
class Keeper {
 public:
  virtual ~Keeper() = default;

  // Before all other calls: what takes threads, or the rights that the process
  // will have.
  virtual Status Start() { return Status::Ok(); }

  // It does not keep what it takes.
  virtual bool live() const = 0;

  // A client is about to send the trace that `name` tells from all others
  // (characters of a file name). Answered by an Event.
  virtual void Open(uint64_t client, const std::string& name,
                    const net::Hello& hello) = 0;
  // Pieces of FrameParser.
  virtual Status Write(uint64_t client, ByteSpan bytes, size_t whole,
                       uint64_t next) = 0;
  // It has enough of this client for the moment: nothing should be read from it
  // before an Event comes of it, or the next Tick.
  virtual bool Busy(uint64_t) const { return false; }
  // The client is gone. Incomplete data is dropped, complete blocks are made
  // durable.
  virtual void Close(uint64_t client) = 0;

  struct Event {
    uint64_t client = 0;
    bool opened = false;  // the answer to Open; else more is durable
    uint64_t next = 0;    // all blocks below are durable (live: taken)
    Status status = {};   // not ok: the client cannot be served
  };
  // What happened since the last call. event_fd() is readable if anything did.
  virtual std::vector<Event> TakeEvents() = 0;
  virtual int event_fd() const = 0;

  // Now and then, about ten times a second. An error ends the receiver.
  virtual Status Tick() { return Status::Ok(); }
  // Makes all durable. Events may come of it.
  virtual Status Finish() = 0;
};

}  // namespace tracefs
