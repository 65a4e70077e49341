// Which Linux this is, where a feature cannot be asked for.
#pragma once

#include <string>

namespace tracefs {

// uname's release, "6.18.44-amd64"; empty if it cannot be had.
std::string KernelRelease();

// Whether `release` is that version or a newer one. False for what is none.
bool IsKernelAtLeast(const std::string& release, int major, int minor);

inline bool IsKernelAtLeast(int major, int minor) {
  return IsKernelAtLeast(KernelRelease(), major, minor);
}

}  // namespace tracefs
