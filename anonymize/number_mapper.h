// NumberMapper: what becomes of the numbers of one slot of a plan. Works on
// whole arrays, because FF1 does.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "anonymize/ff1.h"
#include "anonymize/map_table.h"
#include "anonymize/plan.h"
#include "tracefs/crypto/hash.h"

namespace tracefs::anonymize {

// The unlinkable values of one block: a pseudo-random stream that depends on
// the key, the trace and the block, so that the output does not depend on which
// thread works on what.
struct RandomPlace {
  format::Serial serial{};
  uint64_t block = 0;
  uint64_t count = 0;  // values taken so far
};
// The next 16 bytes of it.
std::array<std::byte, 16> NextRandom(Mac& mac, KeySpan key, RandomPlace* place);

// Where a number with the slot's rule for times goes: shifted, then quantised.
uint64_t ShiftAndQuantise(const NumberSlot& slot, uint64_t value);

// Used by one thread.
class NumberMapper {
 public:
  // `slot` and `maps` outlive the mapper. cache_entries: 0 = none; the results
  // are the same.
  static Result<NumberMapper> Create(const NumberSlot* slot,
                                     size_t cache_entries, MapTables* maps);

  // Replaces the numbers of the slot's width at these offsets of `block`.
  Status Apply(std::byte* block, std::span<const uint32_t> offsets,
               RandomPlace* place);
  // One number, not in a block: of a header.
  Status Apply(uint64_t* value, RandomPlace* place);

 private:
  struct Entry {
    uint64_t value = 0;
    uint64_t mapped = 0;
    bool used = false;
  };
  explicit NumberMapper(const NumberSlot* slot) : slot_(slot) {}

  Status MapAll(RandomPlace* place);
  // The keyed ones: what is not in the cache, all at once.
  Status MapKeyed();
  Status Permute(std::span<uint64_t> values);
  uint64_t MapPlainly(uint64_t value) const;
  bool Keeps(uint64_t value) const;
  uint64_t Mask() const {
    return slot_->width == 8 ? ~uint64_t{0}
                             : (uint64_t{1} << 8 * slot_->width) - 1;
  }

  const NumberSlot* slot_;
  MapTables* maps_ = nullptr;
  std::optional<Ff1> ff1_;
  std::optional<Mac> mac_;
  SecretKey key_;  // of the algorithm
  std::vector<Entry> cache_;
  std::vector<uint64_t> values_;
  std::vector<uint64_t> misses_;
  std::vector<uint32_t> missed_at_;
};

}  // namespace tracefs::anonymize
