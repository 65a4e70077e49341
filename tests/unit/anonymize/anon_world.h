// What tests of the anonymiser share: a trace with something in every field, a
// key, and the two directions in memory.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "anonymize/key_set.h"
#include "anonymize/policy.h"
#include "tests/support/trace_builder.h"
#include "tracefs/tools/anon/trace_rewriter.h"

namespace tracefs::anonymize {

// Keys from a master of this byte.
KeySet TestKeys(char byte = 'k');

// A trace of several blocks: random operations of every kind, names and paths
// with all kinds of affixes, a long name, losses, a change.
std::string SampleTrace(uint64_t seed = 1);

struct Outcome {
  Status status;
  std::string bytes;
  RewriteCounts counts;
};
struct HowTo {
  unsigned threads = 1;
  size_t cache_entries = BlockRewriter::kDefaultCache;
  bool salvage = false;
};
Outcome HideTrace(const std::string& trace, const std::string& policy,
                  const KeySet& keys, HowTo how = {});
Outcome RevealTrace(const std::string& trace,
                    const std::vector<std::string>& domains, const KeySet& keys,
                    HowTo how = {});
// HideTrace that must work.
std::string MustHide(const std::string& trace, const std::string& policy,
                     HowTo how = {});
std::string MustReveal(const std::string& trace,
                       const std::vector<std::string>& domains,
                       const KeySet& keys);

// One message as it stands in a trace: its id, and its arguments by name. Of
// arguments that repeat, all values.
struct Line {
  uint64_t block = 0;
  uint16_t msg_id = 0;
  std::vector<std::pair<std::string, std::string>> arguments;
  // The value of an argument; "" if it is missing.
  std::string Get(const std::string& name) const;
  bool operator==(const Line&) const = default;
};
// All messages but START, in order, by the names of the self-description.
std::vector<Line> Lines(const std::string& trace);
format::TraceHeader HeaderOf(const std::string& trace);

// The policy that keeps everything but for `statements`, which come instead of
// what is kept for the classes they name.
std::string KeepAllBut(const std::string& statements);

}  // namespace tracefs::anonymize
