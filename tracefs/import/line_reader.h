// LineReader: the lines of a file, of bounded length, as often as one likes.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tracefs/base/status.h"

namespace tracefs::import {

// Used by one thread. Memory: as the longest line, at most kMostBytes.
class LineReader {
 public:
  // A write of 4 MiB with every byte as \377, and its names.
  static constexpr size_t kMostBytes = size_t{16} << 20;

  // `fd` outlives it and can be read at any offset.
  // `offset`: where its first line begins.
  explicit LineReader(int fd, uint64_t offset = 0) : fd_(fd), offset_(offset) {}

  // Back to the begin.
  void Rewind();
  // The next line without its end, good until the next call. False at the end,
  // and where the file cannot be read (status()).
  bool Next(std::string_view* line);
  // Where the last line begins in the file.
  uint64_t line_offset() const { return line_offset_; }
  // Lines that were longer, and are left out.
  uint64_t too_long() const { return too_long_; }
  const Status& status() const { return status_; }

 private:
  bool Fill();

  const int fd_;
  std::vector<char> buffer_;
  size_t begin_ = 0;  // of what is not handed out yet
  size_t end_ = 0;
  uint64_t offset_;  // in the file, of end_
  uint64_t line_offset_ = 0;
  uint64_t too_long_ = 0;
  bool skipping_ = false;
  Status status_;
};

}  // namespace tracefs::import
