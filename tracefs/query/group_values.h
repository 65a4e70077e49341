// What is told of each group of operations: the columns of --values.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/query/distinct_count.h"
#include "tracefs/query/table.h"
#include "tracefs/tally/histogram.h"
#include "tracefs/tally/sums.h"

namespace tracefs::query {

// What is summed up for one group.
struct Tally : tally::TimedSums {
  uint64_t before = 0;  // told before they ran; in nothing else
  uint64_t either = 0;  // of bytes: not known to be read or written
  // Operations that may have moved bytes, and nobody knows how many. (Whether
  // one failed is always known: only the lack of an errno says that it did
  // not.)
  uint64_t unmeasured = 0;
  uint64_t sizes = 0;  // what has a size: reads, writes and copies
  uint64_t size_max = 0;
  uint64_t first_ns = UINT64_MAX;  // since 1970
  uint64_t last_ns = 0;
  // What an aggregate driver told of both files of copies, where groups are not
  // about files: two halves are one byte moved, or one size.
  uint64_t half_bytes = 0;
  uint64_t half_sizes = 0;

  void Add(const Tally& other);
};

// What takes more room, and is kept only if asked for.
struct TallyDetails {
  tally::SparseHistogram latency;
  tally::SparseHistogram size;
  DistinctCount files;
  DistinctCount processes;

  size_t bytes() const {
    return latency.bytes() + size.bytes() + files.bytes() + processes.bytes();
  }
  void Add(const TallyDetails& other);
};

enum class GroupValue : uint8_t {
  kCount,
  kErrors,
  kBytes,
  kRead,
  kWritten,
  kTime,
  kMean,
  kMin,
  kP50,
  kP90,
  kP99,
  kP999,
  kMax,
  kSizeMean,
  kSizeP50,
  kSizeP99,
  kSizeMax,
  kFirst,
  kLast,
  kFiles,
  kProcesses,
  kShare,
  kTimeShare,
  kBefore,
};

// Which details a set of values needs.
struct DetailNeeds {
  bool latency = false;
  bool size = false;
  bool files = false;
  bool processes = false;
  bool any() const { return latency || size || files || processes; }
};
DetailNeeds NeedsOf(const std::vector<GroupValue>& values);

// "count,bytes"; `latency` and `size` stand for several. Empty: count, errors,
// bytes and latency. kInvalid with the nearest word.
Result<std::vector<GroupValue>> ParseGroupValues(std::string_view text,
                                                 std::string_view option);
TableColumn ColumnOf(GroupValue value);
// `all`: of all groups.
Value ValueOf(GroupValue value, const Tally& tally, const TallyDetails* details,
              const Tally& all);

}  // namespace tracefs::query
