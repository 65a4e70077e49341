#include "anonymize/fields.h"

#include "tracefs/base/clock.h"
#include "tracefs/format/constants.h"

namespace tracefs::anonymize {
namespace {

using format::ArgId;

// Of CLK_TCK, in which the kernel tells start times.
constexpr uint64_t kTicks = 100;

constexpr ClassInfo kClasses[] = {
#define TRACEFS_CLASS_ROW(id, name, domain, help) {name, domain, help},
    TRACEFS_DATA_CLASSES(TRACEFS_CLASS_ROW)
#undef TRACEFS_CLASS_ROW
};

}  // namespace

std::span<const ClassInfo> Classes() { return kClasses; }

const ClassInfo& InfoOf(DataClass id) {
  return kClasses[static_cast<size_t>(id)];
}

const ClassInfo* FindClass(std::string_view name) {
  for (const ClassInfo& c : kClasses) {
    if (c.name == name) return &c;
  }
  return nullptr;
}

uint64_t UnitsPerSecond(const format::ArgumentInfo& argument) {
  switch (static_cast<ArgId>(argument.arg_id)) {
    case ArgId::kTimeSec:
      return 1;
    case ArgId::kTimeUsec:
      return 1'000'000;
    case ArgId::kStartTime:
    case ArgId::kChildStart:
      return kTicks;
    default:
      break;
  }
  switch (argument.data_class) {
    case DataClass::kTime:
    case DataClass::kDuration:
    case DataClass::kClock:
      return kNsPerSecond;
    default:
      return 0;
  }
}

}  // namespace tracefs::anonymize
