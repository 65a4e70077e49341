// The paths of an operation: of one of its two files (tally/transfer.h), or
// made only where somebody asks.
#pragma once

#include <optional>
#include <string_view>

#include "tracefs/format/block_decoder.h"
#include "tracefs/tally/transfer.h"

namespace tracefs::format {

// Empty if it is not known. The view points into `record` or `buffer`.
inline std::string_view PathOf(const Record& record, tally::End end,
                               PathBuffer& buffer) {
  return end == tally::End::kFile ? PathOf(record, buffer)
                                  : NewPathOf(record, buffer);
}

// The paths of an operation, made when they are asked for: most operations are
// told by a handle or an inode, and making a path costs more than that.
class RecordPaths {
 public:
  explicit RecordPaths(const Record& record) : record_(record) {}
  RecordPaths(const RecordPaths&) = delete;
  RecordPaths& operator=(const RecordPaths&) = delete;

  const Record& record() const { return record_; }
  // As PathOf and NewPathOf have them; good as long as this and the record.
  std::string_view first() {
    if (!first_) first_ = PathOf(record_, buffer_);
    return *first_;
  }
  std::string_view second() {
    if (!second_) second_ = NewPathOf(record_, second_buffer_);
    return *second_;
  }

 private:
  const Record& record_;
  std::optional<std::string_view> first_;
  std::optional<std::string_view> second_;
  PathBuffer buffer_;
  PathBuffer second_buffer_;
};

}  // namespace tracefs::format
