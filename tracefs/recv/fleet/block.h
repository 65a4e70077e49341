// A block as it came from a broker, checked as far as can be done without the
// rest of its trace.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "filters/output/chain.h"
#include "filters/output/key_ring.h"
#include "tracefs/broker/consumer.h"
#include "tracefs/format/frame.h"

namespace tracefs {

struct FleetBlock {
  std::string host;
  std::string day;  // "2026-01-31", UTC: when the broker took it
  std::string preamble;
  std::string chain;
  std::string frame;  // whole
  format::Serial serial{};
  uint64_t sequence = 0;
  uint64_t number = 0;  // of the delivery
  std::chrono::steady_clock::time_point since;
  // Why the keys that are given do not do for it, where others might; empty:
  // they do.
  std::string key_missing = {};
};

// Used by one thread.
class BlockChecker {
 public:
  // `keys`: where there are any, all blocks must be sealed or encrypted with
  // one of them. May be null: nothing is looked at behind the frame. `decodes`:
  // what is in a block is needed, too.
  BlockChecker(std::shared_ptr<const KeyRing> keys, bool decodes);
  ~BlockChecker();

  // kCorrupt or kInvalid, with the reason, for what is no block, not whole, or
  // not sealed as it must be. Where only a key is missing, the block says so.
  Result<FleetBlock> Check(const Delivery& delivery);

 private:
  class Seals;
  const std::unique_ptr<Seals> seals_;
  const bool decodes_;
};

// "2026-01-31"
std::string DayText(int64_t real_ns);

}  // namespace tracefs
