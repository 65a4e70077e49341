// Where metrics are served: an address as written, and a socket that listens
// there.
#pragma once

#include <string>

#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"

namespace tracefs {

struct MetricsListener {
  UniqueFd fd;          // does not block
  std::string address;  // with the port that was given for port 0
};

// HOST:PORT, [HOST]:PORT or unix:PATH; the socket is for its owner alone, and
// for `group` (a name or number) if one is given.
Result<MetricsListener> ListenForMetrics(const std::string& address,
                                         const std::string& group);

}  // namespace tracefs
