// LivePrinter: prints the operations of all traces as they come in, for a pipe.
// Nothing is kept: what was printed is acknowledged.
//
// A thread of its own decodes and prints, so that neither a slow block nor a
// slow reader of the output holds up connections. Clients take turns there by
// the time that their blocks took.
#pragma once

#include <memory>
#include <string>

#include "tracefs/export/exporter.h"
#include "tracefs/recv/current_keys.h"
#include "tracefs/recv/keeper.h"

namespace tracefs {

struct LivePrinterOptions {
  std::string format = "jsonl";  // of tracefs/export/table.h
  std::shared_ptr<const CurrentKeys> keys =
      std::make_shared<CurrentKeys>(std::make_shared<KeyRing>());
  // A block, as it comes and decoded.
  size_t max_block_bytes = size_t{17} << 20;
  // Output filters of a chain. Configs that anybody uses have four.
  size_t max_filters = 8;
  // For all clients together, decoding included; at least
  // MinLiveMemory(max_block_bytes).
  size_t max_memory = size_t{512} << 20;
};

// Half of it is what decoding one block takes: as it came, twice as a reader
// holds it, decoded stage by stage, and the indexes of what is in it.
inline constexpr size_t MinLiveMemory(size_t max_block_bytes) {
  return 2 * (12 * max_block_bytes + (size_t{16} << 20));
}

// `out` outlives the keeper, and is used by its thread alone between Start and
// the end of Finish.
std::unique_ptr<Keeper> MakeLivePrinter(LivePrinterOptions options,
                                        OutputBuffer& out);

}  // namespace tracefs
