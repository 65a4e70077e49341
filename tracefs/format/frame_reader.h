// FrameReader: reads the preamble and the frames of a trace that may be cut,
// damaged, hostile or still growing, and says what is wrong, missing or there
// twice. FORMAT.md sections 1 and 2. Memory and time: as FrameWalk.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/base/bytes.h"
#include "tracefs/base/status.h"
#include "tracefs/format/byte_source.h"
#include "tracefs/format/frame.h"
#include "tracefs/format/frame_walk.h"
#include "tracefs/format/report.h"

namespace tracefs::format {

// What a read attempt came to.
enum class ReadStep {
  kItem,  // there is one
  kEnd,   // there will be no more
  kWait,  // the input may grow: try again later
};

struct Frame {
  FrameHeader header;
  uint64_t offset = 0;  // of the header in the input
  ByteSpan payload;     // valid until the next call
};

class FrameReader {
 public:
  // Counts into `stats` and reports to `report`; both outlive the reader.
  // follow: a growing input has no end, see Stop.
  FrameReader(std::unique_ptr<ByteSource> source, bool follow, ReadStats* stats,
              const ReportSink* report);

  // Reads the preamble: kItem once, after which preamble() may be asked. An
  // error means that this is not a trace, or that it cannot be read at all. A
  // damaged preamble is reported and replaced by what can be saved of it.
  Result<ReadStep> ReadPreamble();
  const Preamble& preamble() const { return preamble_; }
  // As it stands in the input; empty where that was damaged.
  ByteSpan preamble_bytes() const { return preamble_bytes_; }

  // The next acceptable frame, of any kind but marks, in order of sequence
  // numbers.
  Result<ReadStep> Next(Frame* frame);

  // Frames come as they are found, marks included, whatever their numbers, and
  // gaps and copies are neither counted nor told: for verifiers, who do not
  // trust numbers.
  void TakeAnyOrder() { any_order_ = true; }

  // Goes on with the frame at another place of the input, which has a Size.
  // What lies between is neither missing nor there twice.
  Status Jump(uint64_t offset);
  ByteSource& source() { return walk_.source(); }
  // Behind the frame that Next returned last.
  uint64_t offset() const { return walk_.offset() + frame_bytes_; }

  // From now on the end of the input is the end.
  void Stop() { walk_.Stop(); }

  // What is held, and giving it back where nothing of it is needed: the frame
  // that Next returned last is gone.
  size_t memory_bytes() const { return walk_.memory_bytes(); }
  void ReleaseMemory();
  // Whether the input's writer lives: ByteSource.
  bool WriterLives() const { return walk_.WriterLives(); }

 private:
  void ReportDamage(bool at_end = false);
  // Gaps and duplicates: true if the frame is new.
  bool AcceptSequence(const FrameHeader& header);
  // What a mark (marks.h) at the front of the window says.
  void NoteMark(const FrameHeader& header, ByteSpan payload);
  // At the front: the preamble of a further part, a device's end. True if it
  // was consumed; *ended: nothing follows.
  Result<bool> TakeBetweenFrames(bool* ended);
  // What is done about a damaged preamble: first keeps what can be kept, then
  // finds the first frame, which has the serial.
  Result<ReadStep> PreambleDamaged(Status why);
  Result<ReadStep> SavePreamble();
  void Tell(ReportKind kind, uint64_t offset, uint64_t number, uint64_t count,
            std::string_view detail = {}) const;

  ReadStats* const stats_;
  const ReportSink* const report_;

  FrameWalk walk_;
  Preamble preamble_;
  std::vector<std::byte> preamble_bytes_;
  Status preamble_error_;  // while SavePreamble is under way
  bool preamble_has_magic_ = false;
  size_t frame_bytes_ = 0;  // of the frame returned last, still in the window

  bool any_order_ = false;
  bool jumped_ = false;  // the next number is right, whatever it is
  uint64_t part_ = 0;    // by its mark
  std::string gone_;     // the parts before it that are not there
  // A mark of a part was read: a copy of block 0 may follow.
  bool head_copy_may_follow_ = false;
  // Blocks 1 up to here are in parts before the one that the input begins with.
  uint64_t elsewhere_below_ = 0;
  uint64_t accepted_blocks_ = 0;
  bool end_told_ = false;
  bool any_sequence_ = false;
  uint64_t last_sequence_ = 0;
};

}  // namespace tracefs::format
