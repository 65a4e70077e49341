#include "drivers/output/file_name.h"

#include <time.h>

#include <algorithm>
#include <array>

#include "tracefs/base/clock.h"
#include "tracefs/format/frame.h"

namespace tracefs {
namespace {

std::string DateText(uint64_t real_ns) {
  const auto seconds = static_cast<time_t>(real_ns / kNsPerSecond);
  tm utc{};
  ::gmtime_r(&seconds, &utc);
  std::array<char, 32> text;
  const size_t size =
      ::strftime(text.data(), text.size(), "%Y%m%dT%H%M%SZ", &utc);
  return std::string(text.data(), size);
}

}  // namespace

Result<std::string> ExpandFileName(std::string_view name, uint64_t real_ns,
                                   const format::Serial& serial) {
  constexpr std::string_view kDate = "date";
  constexpr std::string_view kSerial = "serial";
  std::string text;
  while (!name.empty()) {
    const size_t at = std::min(name.find('%'), name.size());
    text += name.substr(0, at);
    name.remove_prefix(at);
    if (name.empty()) break;
    name.remove_prefix(1);
    if (name.substr(0, kDate.size()) == kDate) {
      text += DateText(real_ns);
      name.remove_prefix(kDate.size());
    } else if (name.substr(0, kSerial.size()) == kSerial) {
      text += format::SerialText(serial);
      name.remove_prefix(kSerial.size());
    } else if (name.substr(0, 1) == "%") {
      text += '%';
      name.remove_prefix(1);
    } else {
      return Status::Invalid(
          "in a name of an output % begins %date or %serial; for the character "
          "itself write %%");
    }
  }
  return text;
}

bool IsTemplate(std::string_view name) {
  return name.find("%date") != name.npos || name.find("%serial") != name.npos;
}

}  // namespace tracefs
