// Listening sockets of a receiver.
#pragma once

#include <string>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/net/address.h"

namespace tracefs {

// A listening socket, non-blocking. A Unix socket without a listener is
// replaced; it gets mode 0600.
Result<UniqueFd> Listen(const net::Address& address);

// Sockets that the service manager listens at for us (sd_listen_fds(3)), which
// are ours from now on; the environment no longer tells of them. One whose name
// there is "tls" is for TLS.
struct HandedSocket {
  net::Address address;
  UniqueFd fd;
};
Result<std::vector<HandedSocket>> TakeHandedSockets();

// "tcp:127.0.0.1:41234": where it listens, with the port that it really has.
std::string ListenText(const net::Address& address, int fd);

// Who is at the other end of an accepted connection: for limits ("127.0.0.1",
// "2001:db8::/64", "uid 1000"), and for people ("127.0.0.1:41234", "uid 1000,
// pid 17").
struct PeerText {
  std::string host;
  std::string full;
  unsigned uid = 0;  // of Unix sockets
};
PeerText DescribePeer(const net::Address& address, int fd);

}  // namespace tracefs
