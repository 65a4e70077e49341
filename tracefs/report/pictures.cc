#include "tracefs/report/pictures.h"

namespace tracefs::report {

std::span<const Picture> Pictures() {
  static constexpr Picture kPictures[] = {
      {"timeline", "Operations over time", &DrawTimeline},
      {"latency", "Latency over time", &DrawLatency},
      {"directories", "Directories over time", &DrawDirectories},
      {"tree", "Where the time went, by directory", &DrawTree},
      {"processes", "Processes", &DrawProcesses},
      {"access", "Access patterns", &DrawAccess},
      {"flame", "Command, path, operation", &DrawFlame},
  };
  return kPictures;
}

const Picture* FindPicture(std::string_view name) {
  for (const Picture& picture : Pictures()) {
    if (picture.name == name) return &picture;
  }
  return nullptr;
}

uint64_t NumberAt(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_number() ? found->get<uint64_t>() : 0;
}

SvgWriter NothingToDraw(std::string_view why) {
  SvgWriter svg(kPictureWidth, 40, why);
  svg.Text(0, 24, why);
  return svg;
}

}  // namespace tracefs::report
