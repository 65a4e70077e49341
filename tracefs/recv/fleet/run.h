// tracefs-recv --from: takes blocks from a broker and stores them.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>

#include "tracefs/broker/consumer.h"
#include "tracefs/recv/fleet/fleet_metrics.h"
#include "tracefs/recv/fleet/housekeeping.h"
#include "tracefs/recv/fleet/store.h"

namespace tracefs {

struct FleetOptions {
  BrokerSpec broker;
  ConsumerOptions consumer;
  FleetStoreOptions store;
  HousekeepingOptions housekeeping = {};
  std::set<std::string> hosts;  // that are known; empty: all are
  bool quiet = false;
  std::function<void()> on_tick = {};  // about once a second
  FleetState* state = nullptr;         // kept up to date; outlives it
};

// Until `stop` is readable; what was taken by then is stored.
Status RunFleet(FleetOptions options, int stop);

}  // namespace tracefs
