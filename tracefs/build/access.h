// What an operation does with the files that it names.
#pragma once

#include <cstdint>

#include "tracefs/build/file_step.h"

namespace tracefs::build {

// Bits.
enum Access : uint16_t {
  kNoAccess = 0,
  kRead = 1,      // opened for reading, read, moved away
  kWrite = 2,     // opened for writing, written, made, moved to
  kProbe = 4,     // asked about; of a symbolic link also followed: a path walk
                  // reads it as readlink(2) does, and opens nothing
  kList = 8,      // a directory: its names were read
  kCreate = 16,   // it was made here; not there before, or replaced
  kRemove = 32,   // gone after this
  kAbsent = 64,   // asked for, and not there
  kChange = 128,  // its attributes were changed
  kRun = 256,     // read in order to be run
  kFolder = 512,  // it is a directory
  kExchange = 1024,  // it changed places with another one
};

struct AccessPair {
  uint16_t path = 0;
  uint16_t path2 = 0;
};
AccessPair AccessOf(const FileStep& step);

// Whether a rename gives each of two names what the other one had.
bool Exchanges(const FileStep& step);

// How large the files are after a successful step, as far as it says: what is
// written is at least as large as the end of what was written.
struct SizePair {
  uint64_t path = 0;
  uint64_t path2 = 0;
};
SizePair SizesOf(const FileStep& step);

// O_RDONLY, O_WRONLY, O_RDWR as 0, 1, 2.
inline unsigned OpenMode(uint32_t flags) { return flags & 3; }

}  // namespace tracefs::build
