// LivePrinter: prints the operations of all traces as they come in, for a pipe.
// Nothing is kept: what was printed is acknowledged.
#ifndef TRACEFS_RECV_LIVE_PRINTER_H_
#define TRACEFS_RECV_LIVE_PRINTER_H_

#include <memory>
#include <string>

#include "filters/output/key_ring.h"
#include "tracefs/export/exporter.h"
#include "tracefs/recv/keeper.h"

namespace tracefs {

struct LivePrinterOptions {
  std::string format = "jsonl";  // of tracefs/export/table.h
  std::shared_ptr<const KeyRing> keys = std::make_shared<KeyRing>();
  // Of all clients together: what has come of blocks that are not whole yet.
  size_t max_memory = size_t{256} << 20;
};

// `out` outlives the keeper.
std::unique_ptr<Keeper> MakeLivePrinter(LivePrinterOptions options,
                                        OutputBuffer& out);

}  // namespace tracefs

#endif  // TRACEFS_RECV_LIVE_PRINTER_H_
