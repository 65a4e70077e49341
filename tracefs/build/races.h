// Reads that race with a writer: two processes that meet at a file while both
// run, so that nothing says which one comes first (ProcessOrder). Of all reads
// of a file by one process the first and the last are looked at.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/build/build_graph.h"

namespace tracefs::build {

struct Race {
  enum class Kind : uint8_t {
    kReadBefore,    // read, and written afterwards
    kReadDuring,    // read while it was being written
    kProbedBefore,  // looked up, not found, and made afterwards
  };
  Kind kind{};
  PathId path = PathTable::kNone;
  ExecutionId writer = kNobody;
  ExecutionId reader = kNobody;
  uint64_t gap_ns = 0;  // from the reader to the writer; of kReadDuring, from
                        // the reader to the last write
};
std::string_view RaceName(Race::Kind kind);

struct Races {
  std::vector<Race> list;      // by kind, then path
  uint64_t looked_at = 0;      // files that some wrote and others used
  uint64_t crowded_files = 0;  // where only near users were compared
  uint64_t left_out = 0;       // races there was no room for

  bool whole_lives = true;  // process records say when each began and ended

  // What the list does not have, a sentence each.
  std::vector<std::string> Notes() const;
};

// Bounds on what becomes of a file that very many use, as each of them may race
// with each other one.
struct RaceLimits {
  // Up to this many users of a file are all compared with each other.
  size_t users = 256;
  // Beyond, each reader with so many writers that began last before it and are
  // not done, and so many that began first after it.
  size_t nearest = 8;
  size_t races = size_t{1} << 20;  // listed
};
// Takes time in proportion to the uses in `graph` (times their logarithm),
// whoever uses what. What a process finds absent and its own descendant makes
// is no race: whoever starts jobs looks around for what they make.
Races FindRaces(const BuildGraph& graph, const RaceLimits& limits = {});

}  // namespace tracefs::build
