// Receiver: the event loop of tracefs-recv. Takes traces from any number of
// senders (tracefs/net/PROTOCOL.md) and hands them to a Keeper.
//
// One thread. Each client gets one read a turn, whatever it sends, and costs a
// fixed amount of memory; frames are checked as they pass. ReceiverLimits bound
// what a client may do; a client that exceeds one is told so and disconnected.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/net/address.h"
#include "tracefs/net/tls.h"
#include "tracefs/recv/keeper.h"
#include "tracefs/recv/listener.h"
#include "tracefs/recv/receiver_counts.h"

namespace tracefs {

struct ReceiverLimits {
  size_t max_clients = 1024;
  // Connections besides that may still show a certificate.
  size_t handshakes() const { return max_clients / 8 + 4; }
  // From one address, of one user.
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
  // Besides: sockets that listen already, and stay when we end.
  std::vector<HandedSocket> handed = {};
  ReceiverLimits limits;
  net::TlsContext* tls = nullptr;    // outlives the receiver; for tls addresses
  bool quiet = false;                // says nothing of clients that come and go
  ReceiverCounts* counts = nullptr;  // outlives the receiver; null: its own
  // Called ten times a second at most, with how many are connected. May be
  // empty.
  std::function<void(size_t senders)> on_tick = {};
  // Readable when `on_reload` is to be called, which returns the context for
  // connections from then on (null: the same as before). -1: never.
  int reload_fd = -1;
  std::function<net::TlsContext*()> on_reload = {};
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
