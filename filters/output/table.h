// Every output filter, in one table: it feeds the config's grammar, --help,
// look-up by name when a trace is written, and by the preamble's chain when it
// is read. A new filter is one new row.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "filters/output/chain.h"
#include "filters/output/stage_decoder.h"
#include "tracefs/pipeline/stages.h"
#include "tracefs/pipeline/wish.h"

namespace tracefs {

// What a filter is made from, besides its entry and the next one.
struct OutputFilterInputs {
  // What was opened for it already, as `wishes` of its row has it; nothing: it
  // opens it itself.
  Given given = {};
  // Nothing is to be made or changed, only looked at (--check).
  bool probe = false;
};

struct OutputFilterRow {
  EntryRow entry;
  std::string_view help;
  bool first_only = false;  // may only be the first of a chain
  // Works on messages: nothing before it may have changed bytes.
  bool needs_messages = false;
  // Readers need to know that it was there.
  bool in_chain_text = true;
  // Makes the filter that a checked entry of the config describes, in front of
  // `next`. Keys are read and files opened here, before the mount may cover
  // them; nothing is taken or written before Initialize.
  Result<std::unique_ptr<OutputFilter>> (*make)(
      const ConfigEntry& entry, std::unique_ptr<OutputFilter> next,
      OutputFilterInputs inputs);
  // What the chain text says besides the name: "alg=zlib". Null: nothing.
  std::string (*parameters)(const ConfigEntry& entry) = nullptr;
  // Makes the inverse. Null: the filter changes no byte.
  Result<std::unique_ptr<StageDecoder>> (*make_decoder)(
      const ChainStage& stage, const KeyRing* keys) = nullptr;
  // Whether only a key can show that what it did is right. Null: never.
  bool (*needs_key)(const ChainStage& stage) = nullptr;
  // What `make` would open for a checked entry. Null: nothing.
  std::vector<Wish> (*wishes)(const ConfigEntry& entry) = nullptr;
  // What the grammar cannot see, without opening anything: before `make`.
  // Null: nothing.
  Status (*check)(const ConfigEntry& entry) = nullptr;
  // The option, a duration, that says how often the tracer has to write a block
  // at least. Empty: there is none.
  std::string_view heartbeat_option = {};
};

std::span<const OutputFilterRow> OutputFilters();

// The row of that name; null if there is none.
const OutputFilterRow* FindOutputFilter(std::string_view name);

}  // namespace tracefs
