// Housekeeping of a directory that receivers of a fleet share: small files of
// tables become larger ones, and what may not be kept goes, a day of a host at
// a time. A thread of one of the receivers does it, whichever comes first.
#pragma once

#include <string>

#include "tracefs/base/worker.h"
#include "tracefs/recv/fleet/fleet_metrics.h"
#include "tracefs/recv/fleet/merge.h"
#include "tracefs/recv/retention.h"

namespace tracefs {

struct HousekeepingOptions {
  MergeRules merge = {};      // of a format that can be; every_s = 0: never
  RetentionRules rules = {};  // of days; a host is a sender
};

// Days of hosts, oldest first, as RetentionRules choose among them,
// "host=H/date=D".
std::vector<KeptTrace> ListDays(int root);

// Removes one, with a lock on its host; a trace of which nothing is left then
// keeps its block 0, in case that it goes on.
Status RemoveDay(int root, const std::string& name);

class Housekeeping {
 public:
  // `root` and `state` outlive it.
  Housekeeping(int root, HousekeepingOptions options, FleetState& state);

  // The thread, if there is anything to do.
  Status Start();
  // Looks soon: the disk is full. Threads: any.
  void Hurry() { worker_.Wake(); }
  // One turn, at that time. The thread does it; or a test.
  void Turn(int64_t now_s);

 private:
  void Loop();
  void Merge(int64_t now_s);
  void Remove(int64_t now_s);

  const int root_;
  const HousekeepingOptions options_;
  FleetState& state_;
  Merger merger_;
  Worker worker_;
};

}  // namespace tracefs
