// What a config says of keeping (STR_KEEP): where what operations are about to
// destroy goes, how much of it, and of which operations.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "config/config.h"
#include "filters/input/filter.h"
#include "filters/input/name_service.h"
#include "filters/input/name_table.h"
#include "tracefs/base/status.h"

namespace tracefs {

struct TracerPlan;

struct KeepPlan {
  std::string folder;
  std::string name;  // in it, of this trace
  uint64_t max_bytes = 0;
  bool must = false;             // an operation fails if that cannot be kept
  std::optional<Filter> filter;  // of what is to be kept; none: all
};

// Reads what the drivers of a tracer say of it into `plan`, and notes it in the
// header. Errors say where it stands.
Status PlanKeeping(const Config& file, const TracerConfig& config,
                   const NameService& users, NameTable& names,
                   TracerPlan* plan);

// Whether a config asks for it.
bool AsksToKeep(const TracerConfig& config);

}  // namespace tracefs
