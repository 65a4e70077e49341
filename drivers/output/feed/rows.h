// Feeds over connections: what tcp, tls and unix make of the option `feed`.
#pragma once

#include <memory>

#include "drivers/output/feed/option.h"
#include "drivers/output/table.h"
#include "tracefs/net/address.h"

namespace tracefs {

// What a driver with a feed cannot do: kInvalid if it is asked for.
Status CheckFeed(const ConfigEntry& entry);

// A feed of lines over a connection: what tcp, tls and unix make of an entry
// with one.
Result<MadeOutputDriver> MakeFeedConnection(const ConfigEntry& entry,
                                            const net::Address& address,
                                            Given* given);

}  // namespace tracefs
