// MergedColumns: the operations of one or more traces as columns in order of
// their begin times, their blocks decoded by several threads. The order is that
// of format::TraceMerger; here whole runs of rows are put together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/format/trace_reader.h"
#include "tracefs/reader/columns.h"
#include "tracefs/reader/parallel_columns.h"

namespace tracefs::reader {

// Used by one thread.
class MergedColumns {
 public:
  // Of more traces too many blocks would be under way at once.
  static constexpr size_t kMostTraces = 8;

  struct Options {
    Batch::Specs specs;
    size_t batch_rows = 0;  // of a batch, at most
    // Rows are held for their order up to this; beyond it the oldest is handed
    // out although an older one may follow.
    size_t memory_bytes = 0;
  };

  explicit MergedColumns(Options options) : options_(std::move(options)) {}
  ~MergedColumns();
  MergedColumns(const MergedColumns&) = delete;
  MergedColumns& operator=(const MergedColumns&) = delete;

  // Before the first Next. `columns` are those of `reader`, which outlives this
  // and is not used otherwise meanwhile, and are to be merged. Null, and why,
  // for a trace that cannot be read.
  void Add(format::TraceReader* reader,
           std::unique_ptr<ParallelColumns> columns, Status status);

  // The next rows, not finished; null at the end. Traces that fail end there;
  // the others go on.
  std::shared_ptr<Batch> Next();

  // OK, or why that trace could not be read (to its end).
  const Status& status(size_t i) const { return lanes_[i]->status; }

 private:
  // Rows of one block, of which those from `at` on are still to come.
  struct Piece {
    std::shared_ptr<Batch> rows;
    uint64_t number = 0;  // in the order in which they came
    size_t at = 0;
    size_t bytes = 0;
    Batch::Numbers numbers;  // of its texts in the batch that is being made

    uint64_t next_time() const { return rows->order().times[at]; }
    uint64_t next_real() const { return RealTime(next_time()); }
    uint64_t RealTime(uint64_t time) const {
      return rows->order().clock.ToReal(time);
    }
  };
  // One trace.
  struct Lane {
    format::TraceReader* reader = nullptr;
    std::unique_ptr<ParallelColumns> columns;  // null at its end
    // A heap: the piece with the oldest next row is at the front.
    std::vector<std::unique_ptr<Piece>> open;
    uint64_t pieces = 0;
    uint64_t last_time = 0;
    uint64_t unordered = 0;
    bool unordered_reported = false;
    Status status;
  };

  static bool Later(const std::unique_ptr<Piece>& a,
                    const std::unique_ptr<Piece>& b);
  // Reads ahead until the oldest row is certain, or there is none, or no memory
  // is left.
  void Prepare(Lane* lane);
  void ReadPiece(Lane* lane);
  static void Close(Lane* lane);
  // The one with the oldest row; lanes_.size() if there is none.
  size_t Oldest() const;
  // Moves the rows of the oldest piece that come before all others.
  void TakeRun(size_t lane, Batch* made);
  size_t EndOfRun(size_t lane, const Piece& piece) const;

  const Options options_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  size_t used_bytes_ = 0;
};

}  // namespace tracefs::reader
