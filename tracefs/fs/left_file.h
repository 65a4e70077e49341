// LeftFile: a file without a name that a dead daemon had made for a request,
// and that a later one goes on with: nobody could find it again.
#pragma once

#include <cstdint>

#include "tracefs/base/unique_fd.h"

namespace tracefs {

class FileSystem;
struct Handle;

// Lives until the request is answered, and lets go of what was left of it.
class LeftFile {
 public:
  LeftFile(FileSystem& fs, uint64_t unique);
  ~LeftFile();
  LeftFile(const LeftFile&) = delete;
  LeftFile& operator=(const LeftFile&) = delete;

  // Invalid: there is none.
  UniqueFd Open() const;

 private:
  FileSystem& fs_;
  Handle* const handle_;
};

}  // namespace tracefs
