// What became of a replay: counted by each lane for itself, then added up.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tracefs/event/op.h"
#include "tracefs/tally/histogram.h"

namespace tracefs::replay {

// How many values are at most so large, as far as buckets tell.
uint64_t CountUpTo(const tally::Histogram& values, uint64_t limit);
// The largest distance of the two cumulative shares (Kolmogorov-Smirnov).
double ShareDistance(const tally::Histogram& a, const tally::Histogram& b);

// Why a result that differs is no mismatch.
enum class Explained : uint8_t {
  kNotSupported,  // by the file system of DIR: xattrs, O_TMPFILE, fallocate
  kLayout,        // holes, sizes of lists: each file system has its own
  kRaced,         // the trace itself cannot say
  kNotKept,       // bytes that the trace does not have
  kDevice,        // device nodes are not made
  kRights,        // it takes another user, or root
  kLeftOut,       // it outlives the replay as a right, and was not asked for
  kUntoldNames,   // names that a file has had all along, and nobody used
};
inline constexpr size_t kExplainedCount = 8;
std::string_view ExplainedName(Explained why);

struct Mismatch {
  uint64_t sequence = 0;
  std::string text;  // what was expected and what came
};

struct OpOutcome {
  uint64_t count = 0;
  uint64_t matched = 0;
  uint64_t mismatched = 0;
  std::array<uint64_t, kExplainedCount> explained{};
  tally::Histogram then_ns;
  tally::Histogram now_ns;
  // Of those that do not match: errno then, errno now.
  std::map<std::pair<uint32_t, uint32_t>, uint64_t> errors;
};

struct Outcome {
  static constexpr size_t kMostMismatches = 1000;

  std::array<OpOutcome, kOpCount> ops;
  uint64_t untimed = 0;  // done, not compared
  uint64_t untimed_failed = 0;
  uint64_t bytes_compared = 0;
  uint64_t bytes_written = 0;
  uint64_t bytes_read = 0;
  uint64_t waits = 0;    // for other lanes
  uint64_t skipped = 0;  // looks that were to be left out
  tally::Histogram lateness_ns;
  uint64_t elapsed_ns = 0;
  std::vector<Mismatch> mismatches;  // the first of them

  void Add(const Outcome& other);
  uint64_t operations() const;
  uint64_t matched() const;
  uint64_t mismatched() const;
  uint64_t explained() const;
};

}  // namespace tracefs::replay
