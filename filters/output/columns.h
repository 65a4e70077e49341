// A block sorted by columns: what a compressor is given instead of the block,
// as neighbouring values of one argument are alike and neighbouring arguments
// of one message are not. FORMAT.md section 11.1 has the bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "tracefs/base/bytes.h"
#include "tracefs/base/status.h"

namespace tracefs {

// Sorts blocks. Keeps its memory from block to block, in proportion to the
// largest. Threads: one at a time.
class ColumnSorter {
 public:
  ColumnSorter();
  ~ColumnSorter();

  // The columns of `block`, in memory that is valid until the next call. Empty
  // where there is nothing to win: what is no sequence of whole messages (it
  // was encrypted, say), has an argument of unknown width, or would grow.
  ByteSpan Sort(ByteSpan block);

 private:
  class Sorting;
  const std::unique_ptr<Sorting> sorting_;
};

// Undoes Sort(). `columns` may be hostile: an error, never more memory than a
// small multiple of both sizes. `block` has the size the block must have.
Status MergeColumns(ByteSpan columns, std::span<std::byte> block);

}  // namespace tracefs
