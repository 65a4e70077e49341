// TraceMerger: the operations of one or more traces in order of their begin
// times. FORMAT.md section 6.
//
// Within a trace the order is that of the monotonic clock; several traces,
// which may come from several machines, are merged by real time. Blocks are
// held open until the watermark of their trace lets their operations go.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/format/record.h"
#include "tracefs/format/trace_reader.h"

namespace tracefs::format {

// Used by one thread.
class TraceMerger {
 public:
  // Blocks are opened ahead up to this; beyond it the oldest operation is
  // handed out although an older one may follow. Those that do follow late are
  // counted (ReadStats::unordered_events).
  static constexpr size_t kDefaultMemoryBytes = size_t{256} << 20;

  explicit TraceMerger(size_t memory_bytes = kDefaultMemoryBytes)
      : memory_bytes_(memory_bytes) {}

  // Takes a trace, before the first Next.
  void Add(std::unique_ptr<TraceReader> reader);
  size_t size() const { return lanes_.size(); }
  TraceReader& reader(size_t i) { return *lanes_[i]->reader; }
  const TraceReader& reader(size_t i) const { return *lanes_[i]->reader; }
  // Reads the first block of a trace ahead of Next, so that its description can
  // be asked for. OK at the end too. Not for growing inputs. Once: then it says
  // again what came of it.
  Status ReadFirst(size_t i);
  // Gives back the block that ReadFirst has read, if there is anything in it,
  // before the first Next; else null.
  std::unique_ptr<BlockDecoder> TakeFirst(size_t i);
  // Takes a block that somebody else has read from that trace, before the first
  // Next.
  void Give(size_t i, std::unique_ptr<BlockDecoder> block) {
    TakeBlock(*lanes_[i], std::move(block));
  }
  // OK, or why the input of that trace could not be read (to its end).
  const Status& status(size_t i) const { return lanes_[i]->status; }

  // What blocks and readers hold; and giving back what is not needed between
  // two operations: the last record is gone then.
  size_t memory_bytes() const;
  void ReleaseMemory();

  // The next operation; process records before it go to the sink of their
  // trace (TraceReaderOptions). kWait only if some reader follows a growing
  // input and the order is not certain yet; `hurry`: then hand out the oldest
  // there is. The record is valid until the next call. Traces that fail end
  // there; the others go on.
  ReadStep Next(Record* record, bool hurry = false);
  // Goes on to the next process record, which goes to the sink of its trace:
  // kItem when it has. Operations before it are passed over.
  ReadStep NextProcess();

 private:
  // One trace.
  struct Lane {
    std::unique_ptr<TraceReader> reader;
    // A heap: the block with the oldest next operation is at the front.
    std::vector<std::unique_ptr<BlockDecoder>> open;
    std::unique_ptr<BlockDecoder> used_up;  // the last record points into it
    uint64_t watermark = 0;
    uint64_t last_time = 0;
    bool ended = false;
    bool first_read = false;
    bool unordered_reported = false;
    Status status;
  };

  // Reads ahead until the oldest operation is certain. True if it is, or if
  // there will be none, or no memory is left.
  bool Prepare(Lane& lane);
  // Reads one block into the lane; false if there is none (yet).
  bool ReadBlock(Lane& lane);
  void TakeBlock(Lane& lane, std::unique_ptr<BlockDecoder> block);
  static void SiftFront(Lane& lane);
  // kItem: *oldest has the next operation or process record.
  ReadStep Choose(bool hurry, Lane** oldest);
  // False if it was a process record.
  bool Take(Lane& lane, Record* record);

  const size_t memory_bytes_;
  size_t used_bytes_ = 0;
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace tracefs::format
