// OwnAccount: what the blocks of a trace say about the trace itself: whether it
// ends, and which operations the tracer could not record. It is as much worth
// as the blocks that say it.
#pragma once

#include <vector>

#include "tracefs/base/bytes.h"
#include "tracefs/format/report.h"
#include "tracefs/tools/verify/trace_judge.h"

namespace tracefs {

class OwnAccount {
 public:
  // Takes the messages of a block; true if it has FINAL.
  bool Add(ByteSpan block);
  // A finding for each reason for which operations were not recorded.
  void AddTo(std::vector<JudgedRange>* findings) const;

 private:
  // FINAL also counts what LOSS told in blocks that are gone or unreadable.
  format::ReadStats::Losses told_;
  format::ReadStats::Losses in_all_;
};

}  // namespace tracefs
