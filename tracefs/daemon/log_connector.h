// LogConnector: a small process that connects to the log's socket again for a
// daemon that has shut itself in and has no watchdog to do it.
//
// It holds one end of a socket and nothing else: no trace, no listener, no
// terminal; it has no capability and can gain none. It ends when the daemon
// closes the other end, or is gone; its keeper starts another if it dies.
#pragma once

#include <memory>
#include <string>

#include "tracefs/base/helper_link.h"
#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/daemon/account.h"

namespace tracefs {

class LogConnector {
 public:
  // Makes the process, which will connect to `path` (absolute) and nowhere
  // else, as `account` unless that is null. While there is one thread, and
  // before the sandbox. kSystem if there is no room for another process.
  static Result<std::unique_ptr<LogConnector>> Start(const std::string& path,
                                                     const Account* account);
  // The process ends by itself.
  ~LogConnector() = default;
  LogConnector(const LogConnector&) = delete;
  LogConnector& operator=(const LogConnector&) = delete;

  // A socket of the log, connected again. kSystem while nothing listens there,
  // and for good once the process and its keeper are gone. One thread at a
  // time.
  Result<UniqueFd> Connect();

 private:
  LogConnector(const std::string& path, UniqueFd keeper)
      : link_(HelperKind::kLog, "connects to the log at " + path,
              std::move(keeper)) {}

  HelperLink link_;
};

}  // namespace tracefs
