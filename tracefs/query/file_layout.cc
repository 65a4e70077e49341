#include "tracefs/query/file_layout.h"

#include <linux/fiemap.h>

#include <iterator>

namespace tracefs::query {

bool LiesInOnePlace(const Extent& extent) {
  return extent.has_place() && (extent.flags & FIEMAP_EXTENT_ENCODED) == 0;
}

namespace {

// Says where the list ends, or how it was made, and nothing of the part.
constexpr uint32_t kOfTheList = FIEMAP_EXTENT_LAST | FIEMAP_EXTENT_MERGED;

// The part of an extent from there on, or up to there.
Extent After(Extent extent, uint64_t at) {
  const uint64_t cut = at - extent.logical;
  extent.logical = at;
  extent.length -= cut;
  if (LiesInOnePlace(extent)) extent.physical += cut;
  return extent;
}
Extent Before(Extent extent, uint64_t at) {
  extent.length = at - extent.logical;
  return extent;
}

bool LiesAfter(const Extent& next, const Extent& before) {
  return LiesInOnePlace(before) && LiesInOnePlace(next) &&
         before.physical + before.length == next.physical;
}

}  // namespace

void FileLayout::Forget(uint64_t begin, uint64_t end) {
  auto at = pieces_.lower_bound(begin);
  if (at != pieces_.begin()) {
    const Extent before = std::prev(at)->second;
    const uint64_t its_end = before.logical + before.length;
    if (its_end > begin) {
      std::prev(at)->second = Before(before, begin);
      if (its_end > end) pieces_[end] = After(before, end);
    }
  }
  while (at != pieces_.end() && at->first < end) {
    const Extent piece = at->second;
    at = pieces_.erase(at);
    if (piece.logical + piece.length > end) {
      pieces_[end] = After(piece, end);
    }
  }
}

void FileLayout::Add(const Extent& extent) {
  if (extent.length == 0) return;
  Forget(extent.logical, extent.logical + extent.length);
  Extent piece = extent;
  piece.flags &= ~kOfTheList;
  pieces_[piece.logical] = piece;
}

LayoutSums FileLayout::Sums() const {
  constexpr uint64_t kBlockBytes = 4096;
  LayoutSums sums;
  const Extent* last = nullptr;
  const Extent* placed = nullptr;
  uint64_t placed_bytes = 0;
  for (const auto& [logical, piece] : pieces_) {
    const bool goes_on = last != nullptr && last->flags == piece.flags &&
                         last->logical + last->length == logical &&
                         (LiesAfter(piece, *last) ||
                          (!LiesInOnePlace(piece) && !LiesInOnePlace(*last)));
    if (!goes_on) ++sums.extents;
    last = &piece;
    sums.bytes += piece.length;
    const auto add = [&](uint32_t flag, uint64_t* sum) {
      if ((piece.flags & flag) != 0) *sum += piece.length;
    };
    add(FIEMAP_EXTENT_SHARED, &sums.shared);
    add(FIEMAP_EXTENT_UNWRITTEN, &sums.unwritten);
    add(FIEMAP_EXTENT_DATA_INLINE, &sums.inlined);
    add(FIEMAP_EXTENT_ENCODED, &sums.encoded);
    add(FIEMAP_EXTENT_DELALLOC, &sums.delayed);
    if (!LiesInOnePlace(piece)) continue;
    if (placed != nullptr && !LiesAfter(piece, *placed)) ++sums.jumps;
    placed = &piece;
    placed_bytes += piece.length;
  }
  sums.blocks = placed_bytes / kBlockBytes + (placed_bytes % kBlockBytes != 0);
  return sums;
}

}  // namespace tracefs::query
