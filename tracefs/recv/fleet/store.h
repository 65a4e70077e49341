// FleetStore: where blocks from a broker go, and which of them are there for
// good. Several receivers may share its directory; all are stateless: what is
// stored says itself what is.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "filters/output/key_ring.h"
#include "tracefs/recv/fleet/block.h"

namespace tracefs {

// Descriptors that a store of traces has use for. With a limit below it keeps
// fewer files open.
inline constexpr uint64_t kFleetDescriptors = 4 * 2048 + 256;

struct FleetStoreOptions {
  std::string directory;
  std::string format;  // empty: traces; else that of the tables
  std::shared_ptr<const KeyRing> keys;
  // How long a block waits for those before it, which another receiver may
  // have, or the broker sends later.
  std::chrono::nanoseconds gap_patience = std::chrono::seconds(90);
  // Of tables: how long blocks gather for one file, and how much of them.
  std::chrono::nanoseconds every = std::chrono::seconds(30);
  uint64_t batch_bytes = uint64_t{64} << 20;
  uint64_t max_held_bytes = uint64_t{512} << 20;
};

struct FleetCounts {
  uint64_t blocks = 0;   // stored
  uint64_t doubled = 0;  // were stored before
  uint64_t late = 0;     // came after those that follow them were stored
  uint64_t gaps = 0;     // blocks that did not come in time
  uint64_t files = 0;    // of tables

  void Add(const FleetCounts& more) {
    blocks += more.blocks;
    doubled += more.doubled;
    late += more.late;
    gaps += more.gaps;
    files += more.files;
  }
};

// Used by one thread.
class FleetStore {
 public:
  using Clock = std::chrono::steady_clock;
  virtual ~FleetStore() = default;

  virtual void Add(FleetBlock block) = 0;
  // Stores what can be stored, durably; `hurry`: now, what waits for more of
  // its kind, too. Appends the deliveries that need not come again to `done`,
  // and to `refused` what will never be stored. An error: nothing is lost, but
  // nothing goes on either.
  struct Refused {
    FleetBlock block;
    Status why;
  };
  virtual Status Commit(bool hurry, std::vector<uint64_t>* done,
                        std::vector<Refused>* refused) = 0;
  // Everything that waits will be delivered again.
  virtual void Forget() = 0;
  virtual uint64_t held_bytes() const = 0;
  const FleetCounts& counts() const { return counts_; }

 protected:
  FleetCounts counts_;
};

// `root` is the directory, and outlives the store.
std::unique_ptr<FleetStore> MakeTraceStore(int root, FleetStoreOptions options);
std::unique_ptr<FleetStore> MakeTableStore(int root, FleetStoreOptions options);

}  // namespace tracefs
