// Rewrites a whole trace, block by block, on several threads, in bounded
// memory: blocks are taken from the reading library as they stand. The output
// is written from scratch: preamble, serial, frames.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "anonymize/block_rewriter.h"
#include "anonymize/map_table.h"
#include "anonymize/plan.h"
#include "tracefs/format/trace_reader.h"
#include "tracefs/tools/anon/output_file.h"
#include "tracefs/tools/anon/written_chain.h"

namespace tracefs::anonymize {

// What was done so far.
struct RewriteCounts {
  uint64_t bytes_read = 0;
  uint64_t bytes_written = 0;
  uint64_t messages = 0;
  uint64_t operations = 0;
  // While revealing: texts that are not tokens of the keys given.
  uint64_t left_as_they_are = 0;
  // Of the original's output chain: see WrittenChain.
  std::vector<std::string> left_out = {};
};

// Makes the plan when the trace's description is known.
using PlanMaker = std::function<Result<std::unique_ptr<const Plan>>(
    const format::SelfDescription& description)>;

struct RewriteOptions {
  std::string name;  // of the input, for messages
  unsigned threads = 1;
  size_t cache_entries = BlockRewriter::kDefaultCache;
  // What cannot be read is left out; without it, it is an error.
  bool salvage = false;
  // Called now and then, by one thread at a time; may be empty.
  std::function<void(const RewriteCounts&)> progress;
};

// Rewrites `trace`, of which nothing was read yet, to `sink`. The same input,
// policy and keys give the same bytes, whatever the number of threads and the
// size of caches. `maps` goes on from trace to trace. On failure the sink holds
// rubbish. kCorrupt if the trace is damaged or cut.
Status RewriteTrace(format::TraceReader* trace, const RewriteOptions& options,
                    const PlanMaker& make_plan, MapTables* maps,
                    TraceSink& sink, RewriteCounts* counts);

}  // namespace tracefs::anonymize
