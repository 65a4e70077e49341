// Turns user and group names into numbers when a filter is loaded. An interface
// so that tests bring their own users.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tracefs/base/status.h"

namespace tracefs {

class NameService {
 public:
  virtual ~NameService() = default;
  // Nothing if there is no such user or group; an error if that cannot be
  // found out. May block (LDAP).
  virtual Result<std::optional<uint32_t>> UserId(
      const std::string& name) const = 0;
  virtual Result<std::optional<uint32_t>> GroupId(
      const std::string& name) const = 0;
};

// The system's: getpwnam_r and getgrnam_r. Threads: any.
const NameService& SystemNameService();

}  // namespace tracefs
