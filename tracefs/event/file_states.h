// FileStates: what files hold, and which are open, for traces that are to be
// replayed (STR_REPLAY).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "tracefs/event/file_state.h"

namespace tracefs {

struct OpenFile {
  uint64_t fh = 0;     // as operations name it (Field::kFh)
  uint32_t flags = 0;  // of open(2)
  // Who was last seen using it; tid 0: not known.
  uint32_t tid = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
  // Below the mount point, with '/' before it; empty: it has no name any more.
  std::string path;
  FileState state;
};

// Threads: any.
class FileStates {
 public:
  virtual ~FileStates() = default;

  // Calls `visit` for each file and directory that is open now; what is opened
  // or closed meanwhile may be among them or not.
  virtual void ForEachOpen(
      const std::function<void(const OpenFile& file)>& visit) = 0;

  // CRC-32C of what the file behind a node (Event::node) holds; reads all of
  // it. Nothing if it is longer than `most` bytes, cannot be read, or may have
  // been changed meanwhile.
  virtual std::optional<uint32_t> ChecksumOf(uint64_t node, uint64_t most) = 0;
};

}  // namespace tracefs
