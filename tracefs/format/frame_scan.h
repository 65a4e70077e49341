// FrameScan: passes the frames of a file that Tracefs wrote from front to back,
// up to the first that is not whole. What follows that one was not finished.
#pragma once

#include <cstdint>
#include <vector>

#include "tracefs/base/bytes.h"
#include "tracefs/base/status.h"
#include "tracefs/format/frame.h"

namespace tracefs::format {

// Memory: a small window, however large a frame is.
class FrameScan {
 public:
  // In the trace `serial`, from `at` on; the file has `size` bytes. Numbers of
  // frames grow and are not below `next`. `fd` outlives the scan.
  FrameScan(int fd, uint64_t at, uint64_t size, const Serial& serial,
            uint64_t next)
      : fd_(fd), at_(at), size_(size), check_(serial), next_(next) {}

  enum class Step {
    kFrame,    // was passed
    kCut,      // the rest is shorter than a frame has, or than this one claims
    kDamaged,  // the rest does not begin with a frame
  };
  // kSystem if the file cannot be read. check_payload: else it is not read.
  Result<Step> Next(bool check_payload);
  // After kCut, kDamaged: goes to where another frame may begin, by its header,
  // and Next tells whether it does. False: nowhere; at() is as it was.
  Result<bool> Skip();

  // Behind the frame passed last, or where Skip went.
  uint64_t at() const { return at_; }
  uint64_t left() const { return size_ - at_; }
  uint64_t next() const { return next_; }  // the number after it

 private:
  // What the window has from `at` on, and that is `n` bytes at least, which the
  // file has.
  Result<ByteSpan> Read(uint64_t at, size_t n);

  const int fd_;
  uint64_t at_;
  const uint64_t size_;
  FrameCheck check_;
  uint64_t next_;
  uint64_t window_at_ = 0;
  std::vector<std::byte> window_;  // of the file, from there on
};

}  // namespace tracefs::format
