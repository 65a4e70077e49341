// The command line of tracefs-anon.
#pragma once

#include <string>
#include <vector>

#include "anonymize/block_rewriter.h"
#include "tracefs/base/status.h"
#include "tracefs/command/help_page.h"

namespace tracefs::anonymize {

struct AnonOptions {
  enum class Mode : uint8_t { kHide, kReveal, kAudit, kExplain };
  Mode mode = Mode::kHide;
  HelpWish help = {};
  bool version = false;
  std::string policy;                   // a profile or a file
  std::vector<std::string> keys;        // sources of keys
  std::vector<std::string> trace_keys;  // of encrypted inputs
  std::vector<std::string> reveal;      // domains, or "all"
  std::string audit;                    // the anonymised trace
  std::string against;                  // its original, or empty
  std::vector<std::string> quasi;       // classes or fields that might identify
  std::vector<std::string> ok_words;    // no leak though they are found
  unsigned threads = 0;                 // 0 = one for each processor
  size_t cache_entries = BlockRewriter::kDefaultCache;
  bool salvage = false;
  bool quiet = false;
  std::vector<std::string> inputs;
  std::string output;
};

// kInvalid, with the next step, for what does not make sense.
Result<AnonOptions> ParseAnonOptions(int argc, const char* const* argv);

HelpPage AnonHelp();

}  // namespace tracefs::anonymize
