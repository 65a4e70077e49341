// KeptTracers: the tracers that a mount began with, so that another program can
// plan them again (tracefs/survive/hand_over.h).
//
// As with those that clients add (orders.h), a config is kept as text, and of
// the files that its stages have one more descriptor each.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/config.h"
#include "filters/input/known_names.h"
#include "filters/input/name_service.h"
#include "filters/input/name_table.h"
#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/tracers/orders.h"
#include "tracefs/tracers/plan.h"

namespace tracefs {

// The system's users and groups, and which of them filters have named.
class RememberedNames final : public NameService {
 public:
  Result<std::optional<uint32_t>> UserId(
      const std::string& name) const override {
    return Remember(name, SystemNameService().UserId(name), &users_);
  }
  Result<std::optional<uint32_t>> GroupId(
      const std::string& name) const override {
    return Remember(name, SystemNameService().GroupId(name), &groups_);
  }
  KnownNames names() const { return {users_, groups_}; }

 private:
  static Result<std::optional<uint32_t>> Remember(
      const std::string& name, Result<std::optional<uint32_t>> id,
      KnownNames::Table* all) {
    if (id.ok() && id->has_value()) (*all)[name] = **id;
    return id;
  }

  mutable KnownNames::Table users_;
  mutable KnownNames::Table groups_;
};

struct KeptTracers {
  // All tracers, with the names of files that they have this time.
  Order config;
  std::vector<format::Serial> serials;
  std::vector<UniqueFd> files;
};

// `plans`: made from `config`, their outputs open. Where they have something
// that another program cannot be given, or that cannot be opened once more, the
// error says what.
Result<KeptTracers> KeepTracers(const Config& config,
                                const std::vector<TracerPlan>& plans,
                                const KnownNames& names);

// Plans them again. Uses copies of the files.
Result<std::vector<TracerPlan>> PlanKept(const KeptTracers& kept,
                                         NameTable& names, OutputsStay stay,
                                         Config* config);

}  // namespace tracefs
