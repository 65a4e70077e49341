// Which users and groups a filter or a config names: the client of a request
// has to look them up.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "filters/input/name_service.h"

namespace tracefs {

// Accepts every name, and remembers which were asked for.
class NameCollector final : public NameService {
 public:
  Result<std::optional<uint32_t>> UserId(
      const std::string& name) const override {
    users_.insert(name);
    return std::optional<uint32_t>(0);
  }
  Result<std::optional<uint32_t>> GroupId(
      const std::string& name) const override {
    groups_.insert(name);
    return std::optional<uint32_t>(0);
  }

  const std::set<std::string>& users() const { return users_; }
  const std::set<std::string>& groups() const { return groups_; }

 private:
  mutable std::set<std::string> users_;
  mutable std::set<std::string> groups_;
};

}  // namespace tracefs
