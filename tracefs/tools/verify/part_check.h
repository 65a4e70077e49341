// PartCheck: whether the files of a rotated trace follow each other, by their
// marks (marks.h). The marks carry no key: what was done to blocks on purpose
// is for TraceJudge to find; this finds files that were lost, mixed up or cut.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tracefs/base/bytes.h"
#include "tracefs/format/marks.h"
#include "tracefs/tools/verify/trace_judge.h"

namespace tracefs {

class PartCheck {
 public:
  // The next file of the trace follows, or the first.
  void BeginFile();
  // A frame of it. True if it was a mark, which is not a block.
  bool Add(const format::FrameHeader& header, ByteSpan payload);
  // Some file was a snapshot.
  bool snapshot() const { return snapshot_; }
  // Adds what is wrong to the findings about blocks. That a link does not fit
  // is told only where those are all well: else it is known why.
  void AddTo(std::vector<JudgedRange>* findings) const;

 private:
  void Begin(const format::PartMark& mark);
  void End(const format::PartMark& mark);

  std::optional<format::PartMark> begin_;   // of this file
  format::PartLink link_;                   // of this file, so far
  bool ended_ = false;                      // this file has its end mark
  std::optional<format::PartMark> before_;  // the end of the file before
  std::optional<uint64_t> part_before_;
  bool snapshot_ = false;
  std::vector<JudgedRange> missing_;
  std::vector<JudgedRange> wrong_links_;
};

}  // namespace tracefs
