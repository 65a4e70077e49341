// What tracefs-run adds to the trace of its command at the end, when nothing is
// recorded any more: files that were read (--embed), and the index that
// tracefs-deps answers from (--index). It reads the trace for that, and sends
// blocks to the mount, which writes them as it writes all others: compressed,
// encrypted, sealed.
#pragma once

#include <string>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/mount/embed.h"
#include "tracefs/mount/process_feed.h"

namespace tracefs {

struct AdditionOptions {
  EmbedOptions embed;
  bool index = false;
  std::vector<std::string> keys;  // of a trace that is encrypted

  bool any() const { return index || !embed.patterns.empty(); }
};

// The one trace of a config that something can be added to: kInvalid, with the
// next step, where it goes elsewhere than into one file, or cannot be read
// without keys and there are none.
Result<std::string> TraceOfConfig(const std::string& config,
                                  const AdditionOptions& options);

// Returns a line about what was added, or why not. `folder`: what was traced.
// `goes_on`: others still use the mount, and `feed` is asked to flush.
// Nothing here fails the command.
std::string AddToTrace(const AdditionOptions& options, const std::string& trace,
                       UniqueFd folder, bool goes_on, ProcessFeed& feed);

}  // namespace tracefs
