// uname(2) (kernel_version.h).
#include "tracefs/base/kernel_version.h"

#include <sys/utsname.h>

#include <charconv>

namespace tracefs {

std::string KernelRelease() {
  utsname name;
  return ::uname(&name) == 0 ? name.release : "";
}

bool IsKernelAtLeast(const std::string& release, int major, int minor) {
  const char* const end = release.data() + release.size();
  int found_major = 0;
  int found_minor = 0;
  const auto [dot, error] = std::from_chars(release.data(), end, found_major);
  if (error != std::errc() || dot == end || *dot != '.') return false;
  if (std::from_chars(dot + 1, end, found_minor).ec != std::errc()) {
    return false;
  }
  return found_major > major || (found_major == major && found_minor >= minor);
}

}  // namespace tracefs
