// Users and groups that somebody else has looked up: a daemon in its sandbox
// has no user database.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "filters/input/name_service.h"

namespace tracefs {

class KnownNames final : public NameService {
 public:
  // Names to numbers. One that is no id is as unknown as one that is not there.
  using Table = std::map<std::string, uint64_t, std::less<>>;

  KnownNames() = default;
  KnownNames(Table users, Table groups)
      : users_(std::move(users)), groups_(std::move(groups)) {}

  const Table& users() const { return users_; }
  const Table& groups() const { return groups_; }

  Result<std::optional<uint32_t>> UserId(
      const std::string& name) const override {
    return Find(users_, name);
  }
  Result<std::optional<uint32_t>> GroupId(
      const std::string& name) const override {
    return Find(groups_, name);
  }

 private:
  static std::optional<uint32_t> Find(const Table& table,
                                      const std::string& name) {
    const auto found = table.find(name);
    if (found == table.end() ||
        found->second > std::numeric_limits<uint32_t>::max()) {
      return std::nullopt;
    }
    return static_cast<uint32_t>(found->second);
  }

  Table users_;
  Table groups_;
};

}  // namespace tracefs
