// The command line of tracefs-recv.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/command/help_page.h"
#include "tracefs/daemon/log.h"
#include "tracefs/net/tls.h"
#include "tracefs/recv/fleet/run.h"
#include "tracefs/recv/receiver.h"
#include "tracefs/recv/retention.h"

namespace tracefs {

struct RecvOptions {
  HelpWish help = {};
  bool version = false;
  std::vector<net::Address> listen;
  std::string out;                // a directory; or
  std::string format;             // what is printed
  net::TlsFiles tls;              // all set if some address needs them
  std::vector<std::string> keys;  // for `format`: to decrypt
  ReceiverLimits limits;
  uint64_t max_trace_bytes = 0;
  size_t max_memory = size_t{512} << 20;  // for `format`
  size_t max_traces = 65536;
  bool sandbox = true;
  RetentionRules retention;  // of `out`
  std::string user;          // to turn into; empty: stays who it is
  bool systemd = false;      // sockets are handed in
  std::string list;          // a directory whose traces are to be listed
  bool quiet = false;
  // --from; of the others `keys`, `user`, and how it is watched.
  std::optional<FleetOptions> fleet;
  LogPlace log;
  std::string metrics;        // where they are served; empty: nowhere
  std::string metrics_group;  // who else may ask there
};

Result<RecvOptions> ParseRecvOptions(int argc, const char* const* argv);
HelpPage RecvHelp();

}  // namespace tracefs
