// Where an open file is, as the kernel knows it.
#pragma once

#include <string>
#include <string_view>

namespace tracefs {

// What the kernel puts behind a name that is gone.
inline constexpr std::string_view kGoneMark = " (deleted)";

// The path of the file behind `fd`, of one that has no name any more its last
// one; empty if the kernel does not say. Where just this name of several is
// gone, it has the mark.
std::string PathBelow(int fd);

}  // namespace tracefs
