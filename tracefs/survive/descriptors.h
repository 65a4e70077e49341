// Descriptors: which of the descriptors in a table that a daemon shared with
// its keeper are whose, once the daemon is dead.
//
// The keeper's own are kept by copies, as the daemon may close them and get
// their numbers for others. Those of nodes and open files are in the area. All
// others belonged to the dead daemon alone.
#pragma once

#include <sys/types.h>

#include <utility>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/survive/area.h"

namespace tracefs::survive {

// The numbers of descriptors that records in `area` name, whatever they are.
std::vector<int> NumbersIn(Area& area);

// The process that a pidfd is of; 0: that has ended, or it is no pidfd.
pid_t ProcessOf(int pidfd);
// Whether these processes have one table of descriptors. False, too, where this
// one may not be told (kcmp(2): it needs CAP_SYS_PTRACE, as daemons hide).
bool ShareDescriptors(pid_t one, pid_t other);

class Descriptors {
 public:
  // Copies all that are open, but for standard files and those of records in
  // `area`. Before the first daemon of a keeper.
  Status Keep(Area& area);

  // In a daemon that takes the place of a dead one, and has no threads: opens
  // what was kept under its number, moves files of `area` that are in the way,
  // forgets those that are not what their record says, and closes the rest.
  Status Restore(Area& area) const;

 private:
  std::vector<std::pair<int, int>> kept_;  // number and its copy
};

}  // namespace tracefs::survive
