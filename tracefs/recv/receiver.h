// Receiver: the event loop of tracefs-recv. Takes traces from any number of
// senders (tracefs/net/PROTOCOL.md) and hands them to a Keeper.
//
// One thread. Each client gets one read a turn, whatever it sends, and costs a
// fixed amount of memory; frames are checked as they pass. What a client may do
// is bounded by ReceiverLimits; a client over one is told and disconnected.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/net/address.h"
#include "tracefs/net/tls.h"
#include "tracefs/recv/keeper.h"

namespace tracefs {

struct ReceiverLimits {
  size_t max_clients = 1024;
  // From one address, of one user, with one certificate.
  size_t max_clients_per_peer = 64;
  // A frame: the largest block of a config and what filters add to it.
  uint32_t max_block_bytes = uint32_t{17} << 20;
  // From the connection to a whole HELLO.
  std::chrono::milliseconds greeting = std::chrono::seconds(10);
  // Within a frame, for any byte to come.
  std::chrono::milliseconds stall = std::chrono::seconds(60);
};

struct ReceiverOptions {
  std::vector<net::Address> listen;
  ReceiverLimits limits;
  net::TlsContext* tls = nullptr;  // outlives the receiver; for tls addresses
  bool quiet = false;              // says nothing of clients that come and go
};

class Receiver {
 public:
  // Listens. `keeper` outlives the receiver.
  static Result<std::unique_ptr<Receiver>> Create(ReceiverOptions options,
                                                  Keeper& keeper);
  virtual ~Receiver() = default;

  // Where it listens, ports filled in.
  virtual std::vector<std::string> addresses() const = 0;

  // Serves until `stop` (a descriptor) is readable; then makes all durable,
  // acknowledges it and ends. An error if the keeper failed.
  virtual Status Run(int stop) = 0;
};

}  // namespace tracefs
