// How long the kernel and this process need for a request, by either transport,
// on this host and as busy as it is: what `--transport auto` goes by.
#pragma once

#include <cstdint>
#include <string>

namespace tracefs {

// Of a getattr, there and back; the median of some. 0: could not be measured.
struct TrialFigures {
  uint64_t uring_ns = 0;
  uint64_t dev_ns = 0;

  bool measured() const { return uring_ns != 0 && dev_ns != 0; }
  // Whether io_uring is clearly the slower one. Its requests accumulate while
  // others are served, so it may lose a little when there is only one.
  bool uring_loses() const {
    return measured() && uring_ns > dev_ns + dev_ns / 4;
  }
  // "a request takes 11.2 us there and back, 19.0 us over /dev/fuse"; "" where
  // it was not measured.
  std::string ToString() const;
};

// Makes a private connection for each, which is gone when this returns: some
// milliseconds of work, more on a busy machine; at most 50 ms of requests for
// each. Needs root; both 0 if it cannot be done. Before the process is
// confined.
TrialFigures MeasureTransports();

}  // namespace tracefs
