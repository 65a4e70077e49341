// StageMeter: counts the input of one stage of an output chain, and how long
// the chain takes from there on.
//
// It precedes the stage as an output filter that changes nothing: two clock
// reads a block. The difference between two neighbours is the work of the stage
// between them.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "tracefs/base/owned_counter.h"
#include "tracefs/pipeline/stages.h"

namespace tracefs {

// What one meter has counted. Threads: any may read.
struct StageCounters {
  explicit StageCounters(std::string stage) : name(std::move(stage)) {}

  const std::string name;  // of the stage that follows: "compress", "file"
  OwnedCounter blocks;     // given to it, refused ones included
  OwnedCounter bytes;
  OwnedCounter refused;  // blocks
  OwnedCounter ns;       // spent in it and in all that follows, in its thread
};

// A place for the counters and, while the chain lives, for the stage itself,
// which knows its queue.
class StageProbe {
 public:
  explicit StageProbe(std::string name) : counters(std::move(name)) {}

  StageCounters counters;
  // The stage after the meter, owned by the chain that owns the meter.
  const OutputFilter* stage = nullptr;
};

// Puts a meter in front of `next`; `probe` outlives the result.
std::unique_ptr<OutputFilter> Metered(StageProbe& probe,
                                      std::unique_ptr<OutputFilter> next);

}  // namespace tracefs
