#include "tracefs/tracers/survives.h"

#include <string>
#include <tuple>

#include "drivers/assembly/table.h"
#include "tracefs/survive/area.h"
#include "tracefs/tracers/plan_outputs.h"

namespace tracefs {
namespace {

Status CannotSurvive(const Config& config, const ConfigEntry& entry,
                     const std::string& why) {
  return Status::Invalid(PlaceText(config, entry.position) +
                         ": --survive yes: '" + entry.name + "' " + why);
}

Status CheckSurvives(const Config& config, const TracerConfig& tracer) {
  for (const ConfigEntry& entry : tracer.assembly) {
    const AssemblyDriverRow* const row = FindAssemblyDriver(entry.name);
    if (row == nullptr || row->only_counts) {
      return CannotSurvive(config, entry,
                           "keeps its state in the daemon's own memory, and "
                           "would start again from nothing; leave it out");
    }
  }
  for (size_t i = 0; i + 1 < tracer.output.size(); ++i) {
    const ConfigEntry& entry = tracer.output[i];
    if (entry.name == "compress" || entry.name == "columns") continue;
    return CannotSurvive(config, entry,
                         "holds what a later daemon would not know (blocks, "
                         "keys or the last seal); of the output filters only "
                         "compress and columns go with it");
  }
  const ConfigEntry& driver = tracer.output.back();
  for (const char* const option :
       {"rotate_size", "rotate_time", "rotate_count", "feed"}) {
    if (driver.Has(option)) {
      return CannotSurvive(config, driver,
                           std::string("with ") + option +
                               " cannot go on in the middle; leave it out");
    }
  }
  if (driver.name == "file") return Status::Ok();
  return CannotSurvive(config, driver,
                       "cannot go on where a dead daemon has stopped; write to "
                       "a file");
}

}  // namespace

Status CheckSurvives(const Config& config) {
  constexpr size_t kMost = std::tuple_size_v<decltype(survive::Header::traces)>;
  if (config.tracers.size() > kMost) {
    return Status::Invalid(config.file_name + ": --survive yes: at most " +
                           std::to_string(kMost) + " tracers");
  }
  for (const TracerConfig& tracer : config.tracers) {
    if (Status s = CheckSurvives(config, tracer); !s.ok()) return s;
  }
  return Status::Ok();
}

}  // namespace tracefs
