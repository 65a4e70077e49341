// What a config asks for and no trace of this mount will show: said when the
// config is checked, when it is mounted or added, and in the trace's header.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/tracers/plan.h"

namespace tracefs {

struct WarningFacts {
  // Lock requests come to us.
  bool forwards_locks = false;
  // The mount is there already: what comes to us is settled.
  bool mounted = false;
  // As the mount option calls it; empty: not known.
  std::string_view visibility = {};
};

// Warnings about the filters of one plan, and about what they cannot get.
std::vector<std::string> WarningsOf(const TracerPlan& plan,
                                    const WarningFacts& facts);

// The property of headers that holds them, one a line.
inline constexpr char kWarningsProperty[] = "filter.warnings";
void PutWarnings(const WarningFacts& facts, TracerPlan* plan);

// All of them for people, without those that are there twice.
std::vector<std::string> WarningsOf(std::span<const TracerPlan> plans,
                                    const WarningFacts& facts);

}  // namespace tracefs
