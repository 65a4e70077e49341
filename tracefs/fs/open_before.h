// Files that were opened before the tracers changed: how the kernel reads and
// writes them was chosen then, and stays.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tracefs/fs/file_system.h"

namespace tracefs {

struct OpenBefore {
  struct File {
    std::string path;  // below the mount point; empty: not known
    IoMode mode;       // as it was opened
    IoMode now;        // as it would be now
  };
  size_t open = 0;       // all open files, counted by handles
  size_t different = 0;  // of those: opened differently than they would be now
  std::vector<File> examples;
};

// Not from a worker's handler.
OpenBefore FindOpenBefore(FileSystem& fs, size_t max_examples);

}  // namespace tracefs
