// FileState: what a file is at one moment, beyond what requests tell: for
// traces that are to be replayed (STR_REPLAY).
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tracefs {

struct FileState {
  // More than this of a file is not kept, and said to be missing.
  static constexpr size_t kMostXattrBytes = size_t{64} << 10;
  static constexpr size_t kMostRanges = 256;

  struct Range {
    uint64_t offset = 0;
    uint64_t length = 0;
  };

  struct stat st {};
  std::string target;  // of a symbolic link
  // Names and values.
  std::vector<std::pair<std::string, std::string>> xattrs;
  // Where data is, all else being holes; absent where there are none, or where
  // nobody can say.
  std::optional<std::vector<Range>> data;
  // CRC-32C of the contents, where it was asked for and could be had.
  std::optional<uint32_t> checksum;
  // Something of the above could not be read, or there was too much of it.
  bool incomplete = false;
};

}  // namespace tracefs
