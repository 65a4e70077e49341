// Addresses of receivers, as configs and command lines write them.
#pragma once

#include <string>
#include <string_view>

#include "tracefs/base/status.h"

namespace tracefs::net {

// The last two are for syslog alone.
enum class Transport { kTcp, kTls, kUnix, kSeqpacket, kUdp, kDatagram };

// "tcp", "tls", "unix", "seqpacket", "udp", "datagram".
std::string_view TransportName(Transport transport);

struct Address {
  Transport transport = Transport::kTcp;
  // Name or number; "" listens everywhere. For Unix sockets the path.
  std::string host = {};
  std::string port = {};  // decimal

  bool is_unix() const {
    return transport == Transport::kUnix ||
           transport == Transport::kSeqpacket ||
           transport == Transport::kDatagram;
  }
  // "tcp:host:9900", "unix:/run/socket".
  std::string Text() const;
};

// "HOST:PORT", "[v6]:PORT", or a path for Unix sockets; the same with
// "TRANSPORT://" in front, and a '/' after a port. kInvalid says what is
// expected. An empty host is refused unless `listen`.
Result<Address> ParseAddress(Transport transport, std::string_view text,
                             bool listen);
// What Address::Text gives.
Result<Address> ParseAddressText(std::string_view text);
// The same with "TRANSPORT:" in front: "tls:collector:9900". Without it TCP is
// meant.
Result<Address> ParseListenAddress(std::string_view text);

}  // namespace tracefs::net
