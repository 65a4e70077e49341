#include "tracefs/tracers/survives.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <tuple>

#include "tracefs/survive/area.h"
#include "tracefs/tracers/plan_outputs.h"

namespace tracefs {
namespace {

constexpr std::array<std::string_view, 5> kFilters = {
    "compress", "columns", "checksum", "encrypt", "throttle"};

constexpr std::array<std::string_view, 3> kReceivers = {"tcp", "tls", "unix"};

Status CannotSurvive(const Config& config, const ConfigEntry& entry,
                     const std::string& why) {
  return Status::Invalid(PlaceText(config, entry.position) +
                         ": --survive yes: '" + entry.name + "' " + why);
}

Status CheckSurvives(const Config& config, const TracerConfig& tracer) {
  for (size_t i = 0; i + 1 < tracer.output.size(); ++i) {
    const ConfigEntry& entry = tracer.output[i];
    if (std::ranges::find(kFilters, entry.name) != kFilters.end()) continue;
    return CannotSurvive(
        config, entry,
        "holds what a later daemon would not know (blocks, or "
        "what stands for what); of the output filters "
        "compress, columns, checksum, encrypt and throttle go with it");
  }
  for (const ConfigEntry& entry : tracer.assembly) {
    for (const ConfigWord& flag : entry.value.flags) {
      if (flag.text == "STR_KEEP") {
        return CannotSurvive(config, entry,
                             "with STR_KEEP keeps what a later daemon would "
                             "not know to be kept");
      }
      if (!flag.text.starts_with("STR_REPLAY")) continue;
      return CannotSurvive(config, entry,
                           "with " + flag.text +
                               " tells what a file was when it was first "
                               "touched, which a later daemon would not know");
    }
  }
  const ConfigEntry& driver = tracer.output.back();
  if (driver.Has("feed")) {
    return CannotSurvive(config, driver,
                         "with feed cannot go on in the middle; leave it out");
  }
  if (driver.name == "file") return Status::Ok();
  if (std::ranges::find(kReceivers, driver.name) != kReceivers.end()) {
    if (driver.Text("when_full") != "spill") return Status::Ok();
    return CannotSurvive(config, driver,
                         "with when_full = spill cannot go on in the middle; "
                         "choose another policy");
  }
  return CannotSurvive(config, driver,
                       "cannot go on where a dead daemon has stopped; write to "
                       "a file, or to a tracefs-recv");
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

Status CheckAddSurvives(const Config& config, const survive::Area& area) {
  if (area.header().tracing.load() != survive::Tracing::kOn) {
    return Status::Invalid(
        "daemons of this mount have crashed again and again, and it goes on "
        "without traces; unmount it and mount it again");
  }
  return CheckSurvives(config);
}

}  // namespace tracefs
