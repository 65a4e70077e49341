// Client: one connection to the receiver, from the handshake to its end.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "tracefs/format/frame_parser.h"
#include "tracefs/net/address.h"
#include "tracefs/net/stream.h"
#include "tracefs/net/tls.h"
#include "tracefs/net/wire.h"
#include "tracefs/recv/listener.h"

namespace tracefs {

struct Client {
  using Clock = std::chrono::steady_clock;
  enum class State {
    kHandshake,  // of TLS
    kHello,      // HELLO is not whole
    kOpening,    // the keeper looks for what is there: nothing is read
    kStreaming,  // frames come
    kEnding,     // what is to be said is still to be sent, then it is closed
  };

  uint64_t id = 0;
  net::Transport transport = net::Transport::kTcp;
  net::TlsContext* tls = nullptr;  // that the stream belongs to; outlives it
  std::unique_ptr<net::Stream> stream;
  PeerText peer;
  State state = State::kHandshake;
  Clock::time_point since;  // it connected, or something last came
  std::string hello;        // as far as it has come
  std::string source;       // the name of its trace
  format::Serial serial{};
  std::optional<FrameParser> frames;
  uint64_t first = 0;  // number after the last block that was there before
  std::string out;     // still to be sent
  uint64_t ack = 0;    // to be sent as soon as `out` is
  uint64_t acked = 0;
  bool opened = false;  // the keeper knows it
  bool ended = false;   // the sender will send no more
  uint32_t events = 0;  // that epoll waits for

  // HELLO, once it is whole. Or it is not to be, and for what reason.
  Result<std::optional<net::Hello>> AddToHello(ByteSpan bytes,
                                               net::RefuseReason* reason);
  // It has sent at least one good block.
  bool proven() const { return frames && frames->next() > first; }
  // Its identity is certain.
  bool known() const {
    return transport == net::Transport::kTls
               ? !source.empty()
               : transport != net::Transport::kTcp;
  }
};

// The name of a trace in a directory: its sender, with TCP only the address,
// and its serial. No sender can add to another's trace.
std::string SourceName(net::Transport transport, const PeerText& peer,
                       const std::string& certificate_name,
                       const format::Serial& serial);

}  // namespace tracefs
