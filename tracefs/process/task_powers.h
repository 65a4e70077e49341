// What a task may do beyond what its user and group may: its supplementary
// groups, and its capabilities with the ids over which it has them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace tracefs {

struct IdRange {
  uint32_t first = 0;
  uint32_t count = 0;
};

// By an id's number on the outside (in the user namespace of the reader).
class IdRanges {
 public:
  // From a uid_map or gid_map; any other text maps nothing.
  static IdRanges Parse(std::string_view map);

  bool Contains(uint32_t id) const {
    for (const IdRange& range : ranges_) {
      if (id - range.first < range.count) return true;
    }
    return false;
  }
  // Every id there is, as in the first user namespace.
  bool ContainAll() const {
    return ranges_.size() == 1 && ranges_[0].first == 0 &&
           ranges_[0].count == 0xffffffff;
  }

 private:
  std::vector<IdRange> ranges_;
};

struct TaskPowers {
  std::vector<gid_t> groups;
  uint64_t capabilities = 0;  // effective ones, over what its ids map
  IdRanges uids;
  IdRanges gids;

  // Whether a capability of the task counts for a file of these owners
  // (linux/kernel/capability.c, capable_wrt_inode_uidgid).
  bool Over(uint32_t uid, uint32_t gid) const {
    return uids.Contains(uid) && gids.Contains(gid);
  }
};

// From the text of a status file, all but the ranges. None if it is not one, or
// if the task does not act for `fsuid` and `fsgid`: another has got its number.
std::optional<TaskPowers> ParsePowers(std::string_view status, uint32_t fsuid,
                                      uint32_t fsgid);

// Those of a task that waits for us. The maps are read if a capability in
// `wanted` makes them matter. `proc`: a descriptor of /proc. Three system calls
// and 13 us, nine for the capable; takes no lock that the task may hold
// (proc_reader.h).
std::optional<TaskPowers> ReadPowers(int proc, uint32_t tid, uint32_t fsuid,
                                     uint32_t fsgid, uint64_t wanted);

}  // namespace tracefs
