// How many bytes that take no room are read, at most: a trace makes a file of
// 2^61 bytes with one call, and reading its zeros would take forever.
#pragma once

#include <sys/stat.h>

#include <algorithm>
#include <cstdint>

namespace tracefs::replay {

// Used by one thread; of all files that are read for one purpose.
class HoleBudget {
 public:
  // Whether this file may be read whole.
  bool Take(const struct stat& st) {
    const auto size = static_cast<uint64_t>(std::max<off_t>(st.st_size, 0));
    const uint64_t stored = static_cast<uint64_t>(st.st_blocks) * 512;
    const uint64_t holes = size - std::min(size, stored);
    if (holes > left_) return false;
    left_ -= holes;
    return true;
  }

 private:
  uint64_t left_ = uint64_t{16} << 30;
};

}  // namespace tracefs::replay
