// Dialer: makes connections to one receiver, again and again.
//
// A daemon in its sandbox has no network, no /etc/hosts and no file names. A
// process of its own, made before, resolves the name and connects each time,
// and hands the connected socket over; it can do nothing else.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "tracefs/base/helper_link.h"
#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/net/address.h"

namespace tracefs {

class Dialer {
 public:
  virtual ~Dialer() = default;
  // A connected, non-blocking socket, after at most about 20 s. ECANCELED as
  // soon as `cancel` (a descriptor) is readable. Used by one thread.
  virtual Result<UniqueFd> Dial(int cancel) = 0;
  // Where the descriptor of the process that connects is found by a later
  // daemon (HelperLink::KeepIn); nothing happens where it has such a place.
  // Before the first Dial.
  virtual void KeepIn(std::atomic<int32_t>& /*place*/) {}
};

// Connects in this process.
std::unique_ptr<Dialer> MakeDirectDialer(net::Address address);

// Starts the process; it ends with the dialer, or with us. Before the first
// thread is made. kSystem if no process can be made, as in a sandbox.
Result<std::unique_ptr<Dialer>> StartDialerProcess(net::Address address);

// The same in two steps, of which the first may be done by another program: the
// process, as the socket of its keeper (ForkHelper), and the dialer that uses
// it. `address`: for the log.
Result<UniqueFd> ForkDialer(const net::Address& address);
std::unique_ptr<Dialer> MakeProcessDialer(HelperKind kind,
                                          const std::string& address,
                                          UniqueFd keeper);

}  // namespace tracefs
