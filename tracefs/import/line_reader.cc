#include "tracefs/import/line_reader.h"

#include <cerrno>
#include <cstring>

#include "tracefs/base/bytes.h"
#include "tracefs/base/file_io.h"

namespace tracefs::import {

void LineReader::Rewind() {
  begin_ = end_ = 0;
  offset_ = too_long_ = 0;
  skipping_ = false;
}

// Reads on, behind what is there.
bool LineReader::Fill() {
  constexpr size_t kFirst = size_t{64} << 10;
  if (begin_ != 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  if (end_ == buffer_.size()) {
    buffer_.resize(buffer_.empty() ? kFirst : buffer_.size() * 2);
  }
  const ssize_t got = ReadAt(
      fd_, std::as_writable_bytes(std::span(buffer_).subspan(end_)), offset_);
  if (got < 0) {
    status_ = Status::System(errno, "read");
    return false;
  }
  end_ += static_cast<size_t>(got);
  offset_ += static_cast<uint64_t>(got);
  return got != 0;
}

bool LineReader::Next(std::string_view* line) {
  size_t looked = 0;
  for (;;) {
    const std::string_view there(buffer_.data() + begin_, end_ - begin_);
    line_offset_ = offset_ - there.size();
    const size_t at = there.find('\n', looked);
    if (at != there.npos) {
      begin_ += at + 1;
      looked = 0;
      if (skipping_) {
        skipping_ = false;
        continue;
      }
      *line = there.substr(0, at);
      return true;
    }
    looked = there.size();
    if (there.size() >= kMostBytes) {
      if (!skipping_) ++too_long_;
      skipping_ = true;
      begin_ = end_;
      looked = 0;
    }
    if (Fill()) continue;
    if (!status_.ok() || begin_ == end_ || skipping_) return false;
    // A last line without an end.
    *line = {buffer_.data() + begin_, end_ - begin_};
    begin_ = end_;
    return true;
  }
}

}  // namespace tracefs::import
