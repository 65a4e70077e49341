// FileLayout: where the parts of a file lie, as the last operation on each part
// told.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "tracefs/event/extents.h"

namespace tracefs::query {

// How far it is from where an access ended to where the next one begins.
inline uint64_t SeekDistance(uint64_t end, uint64_t next) {
  return next > end ? next - end : end - next;
}

// Whether it is known from where to where on the device it lies: of compressed
// data only where it begins is told.
bool LiesInOnePlace(const Extent& extent);

// In bytes of the file; no sum reaches beyond 2^64.
struct LayoutSums {
  uint64_t extents = 0;  // parts that are one: neighbours that also lie so
  uint64_t bytes = 0;
  uint64_t shared = 0;
  uint64_t unwritten = 0;
  uint64_t inlined = 0;
  uint64_t encoded = 0;
  uint64_t delayed = 0;
  // Of what lies in one place: how many blocks of 4096 bytes that is, and how
  // often one part does not lie after the one before it.
  uint64_t blocks = 0;
  uint64_t jumps = 0;
};

// Used by one thread. Its caller bounds it by `pieces`.
class FileLayout {
 public:
  // What was known of that part before is forgotten. Makes at most two more
  // pieces. Ends below 2^64 (TakeExtent).
  void Add(const Extent& extent);
  size_t pieces() const { return pieces_.size(); }
  LayoutSums Sums() const;

 private:
  void Forget(uint64_t begin, uint64_t end);

  std::map<uint64_t, Extent> pieces_;  // by `logical`; apart from each other
};

}  // namespace tracefs::query
