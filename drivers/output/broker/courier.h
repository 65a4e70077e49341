// The courier: a process of its own that stands between a driver and a broker.
//
// To the driver it is a receiver like any other (tracefs/net/PROTOCOL.md), so
// that queues, loss policies and spill directories are those of tcp and tls.
// What the driver's link hands over it publishes, and it acknowledges what the
// broker has. It alone has the broker's library, keys and connections: these
// would find no network in the daemon's sandbox.
#pragma once

#include <memory>

#include "drivers/output/remote/dialer.h"
#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/broker/publisher.h"
#include "tracefs/broker/spec.h"

namespace tracefs {

// Starts one (ForkHelper). Each dialling of MakeProcessDialer makes a new
// connection to the broker.
Result<UniqueFd> ForkCourier(BrokerSpec spec);

// One conversation with a link, at `socket`; ends with it, with the publisher,
// or when `stop` is readable. For tests, too.
void Convey(const BrokerSpec& spec, Publisher& publisher, UniqueFd socket,
            int stop);

// What the preamble's chain text of a feed's blocks begins with: they hold
// lines, and are no trace.
inline constexpr std::string_view kLinesChain = "lines";

}  // namespace tracefs
