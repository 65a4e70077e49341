// Where an open file is, as the kernel knows it.
#pragma once

#include <string>

namespace tracefs {

// The path of the file behind `fd`, of one that has no name any more its last
// one; empty if the kernel does not say. Where just this name of several is
// gone, it has kGoneMark.
std::string PathBelow(int fd);

}  // namespace tracefs
