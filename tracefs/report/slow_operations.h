// SlowOperations: those that took longest, of all and of each bin of time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tracefs/event/op.h"
#include "tracefs/report/time_grid.h"

namespace tracefs::report {

// One of the slowest operations.
struct SlowOperation {
  uint64_t real_ns = 0;  // 0: no time known
  uint64_t time_ns = 0;
  Op op{};
  uint32_t error = 0;
  uint64_t pid = 0;
  std::string comm = {};
  std::string path = {};
};

// Used by one thread.
class SlowOperations {
 public:
  static constexpr size_t kMost = 250;
  // Of each bin: the slowest of any row of bins are among them, and as many of
  // them are certain.
  static constexpr size_t kOfBin = 5;

  // Whether Add would keep it; only when and how long has to be known of it.
  bool Wants(const SlowOperation& slow, const Bins& coarse);
  void Add(const SlowOperation& slow, const Bins& coarse);

  // Slowest first.
  std::vector<SlowOperation> OfAll() const;
  // Those of bins that are not among OfAll; slowest first.
  std::vector<SlowOperation> OfBins() const;

 private:
  std::vector<SlowOperation>& Bin(uint64_t real_ns, const Bins& coarse);

  std::vector<SlowOperation> all_;  // a heap, the least slow in front
  std::map<uint64_t, std::vector<SlowOperation>> bins_;  // slowest first
  int shift_ = 0;  // of the bins by which they are kept
  // The one that was asked for last.
  uint64_t last_ = 0;
  std::vector<SlowOperation>* last_bin_ = nullptr;
};

}  // namespace tracefs::report
