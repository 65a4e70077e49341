// Where a file has data, and where holes.
#pragma once

#include <cstdint>
#include <optional>

namespace tracefs {

struct FileExtent {
  uint64_t begin = 0;
  uint64_t end = 0;
};

// The next bytes of the open file `fd`, from `at` on and before `end`, that are
// not a hole; nothing if there are none. If that is unknown, all are data:
// reading them then says why.
std::optional<FileExtent> NextData(int fd, uint64_t at, uint64_t end);

}  // namespace tracefs
