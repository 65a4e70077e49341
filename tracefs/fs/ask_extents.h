// Asking the file system where parts of a file lie.
#pragma once

#include <cstdint>
#include <string>

#include "tracefs/fs/written_ranges.h"

namespace tracefs {

// Puts where these ranges of the file lie into `list` (event/extents.h), which
// is empty: the first kMostExtents, cut to the ranges, and into `left_out` how
// many bytes of the ranges come after them. 0 or an errno, and then the list is
// empty. May wait for a call on the same file that is under way, and makes
// nothing be written.
int AskForExtents(int fd, const WrittenRanges& ranges, std::string* list,
                  uint64_t* left_out);

}  // namespace tracefs
