// What this project promises and which Linux that needs: one table, for
// --doctor, `explain` and the header of traces (docs/security.md has it for
// people).
#pragma once

#include <string>

namespace tracefs {

// The oldest Linux on which a mount works, and the oldest on which all promises
// of security and transparency hold.
inline constexpr int kOldestMajor = 5, kOldestMinor = 12;
inline constexpr int kPromisedMajor = 6, kPromisedMinor = 12;

// What a kernel of that release lacks, as people are told; empty: nothing.
std::string KernelLacks(const std::string& release);

}  // namespace tracefs
