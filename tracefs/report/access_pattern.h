// AccessSums: where in their files reads and writes go (tally/access.h), and
// how large they are.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tracefs/event/event.h"
#include "tracefs/report/time_grid.h"
#include "tracefs/tally/access.h"

namespace tracefs::report {

// Used by one thread.
class AccessSums {
 public:
  struct Moved {
    uint64_t count = 0;
    uint64_t bytes = 0;
  };
  struct OneWay {
    std::array<Moved, tally::kAccessSteps> by_step{};
    std::array<uint64_t, 65> by_size{};  // by the bits of the size asked for
    uint64_t unaligned = 0;              // offset or size no multiple of 4096
    std::unordered_map<uint64_t, uint64_t> exact;  // size asked for, count
    uint64_t other_sizes = 0;  // operations whose size is not in `exact`
    // The same in coarse bins.
    struct {
      std::array<BinRow, tally::kAccessSteps> count_by_step;
      std::array<BinRow, tally::kAccessSteps> bytes_by_step;
      std::array<BinRow, 65> by_size;
      BinRow unaligned;
    } bins;
  };

  // As of tally::OpenFiles.
  void Fetch(const Event& event, size_t mount, bool soon) const {
    open_.Fetch(event, mount, soon);
  }
  // Any operation, in order of time. `mount`: handles of mounts differ.
  // `real_ns`: 0: no time is known.
  void Take(const Event& event, size_t mount, uint64_t real_ns,
            const Bins& coarse);
  OneWay& way(tally::Way way) { return ways_[static_cast<size_t>(way)]; }
  // The most frequent sizes, most frequent first, the smaller one of equals.
  std::vector<std::pair<uint64_t, uint64_t>> CommonSizes(tally::Way way,
                                                         size_t most) const;
  uint64_t not_followed() const { return open_.not_followed(); }

 private:
  // What one read or write was.
  struct Step {
    const tally::Transfer& transfer;
    uint64_t offset;
    tally::AccessStep step;
    uint64_t real_ns;
  };
  void Count(const Event& event, const Step& it, const Bins& coarse);

  static constexpr size_t kMaxExact = 4096;

  std::array<OneWay, 2> ways_{};
  tally::OpenFiles<tally::AccessEnd> open_;
};

}  // namespace tracefs::report
