// GroupSpill: groups that memory has no room for, on disk: sorted by key each
// time there are too many, merged in the end.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/query/group_store.h"
#include "tracefs/text/spool.h"

namespace tracefs::query {

// Used by one thread. Of details it keeps histograms, no counts of different
// things: who needs these has none to give.
class GroupSpill {
 public:
  using Entry = GroupStore::Entry;

  // Writes them down. After the first error everything is dropped and the error
  // stays. kSystem: there is no room on the disk either.
  Status Add(const std::deque<Entry>& entries);
  // Whether anything was written, or should have been.
  bool any() const { return !runs_.empty() || !status_.ok(); }

  // Calls `use` with each key once, with all that was counted for it, in order
  // of keys. `memory_bytes`: about what it takes.
  Status Merge(size_t memory_bytes, const std::function<void(Entry&)>& use);

 private:
  struct Run {
    uint64_t begin;
    uint64_t end;
  };
  class RunReader;

  SpoolFile file_;
  std::vector<Run> runs_;
  Status status_;
};

}  // namespace tracefs::query
