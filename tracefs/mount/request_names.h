// Users and groups as the client of a request knows them: a daemon in its
// sandbox has no user database.
#pragma once

#include <limits>
#include <optional>
#include <set>
#include <string>

#include "filters/input/name_service.h"
#include "tracefs/control/request.h"

namespace tracefs {

// Knows the names that came with the request. Outlives no request.
class RequestNames final : public NameService {
 public:
  explicit RequestNames(const ControlRequest& request)
      : users_(request.NamesOf("users")), groups_(request.NamesOf("groups")) {}

  Result<std::optional<uint32_t>> UserId(
      const std::string& name) const override {
    return Find(users_, name);
  }
  Result<std::optional<uint32_t>> GroupId(
      const std::string& name) const override {
    return Find(groups_, name);
  }

 private:
  static std::optional<uint32_t> Find(const ControlRequest::Table& table,
                                      const std::string& name) {
    const auto found = table.find(name);
    if (found == table.end() ||
        found->second > std::numeric_limits<uint32_t>::max()) {
      return std::nullopt;
    }
    return static_cast<uint32_t>(found->second);
  }

  const ControlRequest::Table& users_;
  const ControlRequest::Table& groups_;
};

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
