// Which Linux this is, for features that cannot be tested.
#pragma once

#include <string>

namespace tracefs {

// uname's release, "6.18.44-amd64"; empty if unknown.
std::string KernelRelease();

// Whether `release` is that version or a newer one. False if it is not a
// version.
bool IsKernelAtLeast(const std::string& release, int major, int minor);

inline bool IsKernelAtLeast(int major, int minor) {
  return IsKernelAtLeast(KernelRelease(), major, minor);
}

}  // namespace tracefs
