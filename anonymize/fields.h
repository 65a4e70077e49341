// What each argument of a trace is to the anonymiser: its class, by which a
// policy names it together with its like, and whose identity domain has the key
// it is encrypted with; and the shape of its value. Which argument has which is
// in the tables of arguments (event/field_rows.h, format/names.cc).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "tracefs/format/names.h"

namespace tracefs::anonymize {

using Shape = DataShape;

struct ClassInfo {
  std::string_view name;    // in policies
  std::string_view domain;  // values of one domain share a key, and tokens
  std::string_view help;
};
std::span<const ClassInfo> Classes();
const ClassInfo& InfoOf(DataClass id);
const ClassInfo* FindClass(std::string_view name);

// Of times: units in a second; 0 = no time. A shift is a whole number of
// seconds, so that coarse and fine times of one trace stay together.
uint64_t UnitsPerSecond(const format::ArgumentInfo& argument);

inline constexpr std::string_view kStructureClass = "structure";
inline constexpr std::string_view kPropertyDomain = "host";

}  // namespace tracefs::anonymize
